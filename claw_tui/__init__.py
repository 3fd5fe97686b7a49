"""The operator console: a client of the engine, nothing more."""
