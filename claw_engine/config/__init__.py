"""Configuration: OpenClaw's `openclaw.json` read into immutable settings. Import the modules."""
