"""The engine of claw-tui: gateway, lanes, agent runtime. Importing it loads no screen code."""

__version__ = "0.1.0"
