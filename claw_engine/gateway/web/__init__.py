"""The network port: WebSocket and HTTP. Imported when the port is opened, not before."""
