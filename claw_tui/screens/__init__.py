"""The full-size pages of the console, each with its style sheet beside it."""
