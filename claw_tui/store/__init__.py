"""What the console knows. Pure state: no Textual, no I/O, no clock of its own."""
