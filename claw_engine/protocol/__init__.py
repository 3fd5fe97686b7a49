"""Frames, names and payload shapes that engine and clients share. Light: no pydantic here."""
