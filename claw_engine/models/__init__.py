"""Language models: what to send, how to stream it. Knows no agent, no session."""
