"""What runs did and what every call to a model said, kept on disk."""
