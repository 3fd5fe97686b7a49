"""Skills: instructions in folders of their own, listed for the model, read when they fit."""
