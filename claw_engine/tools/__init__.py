"""What an agent can do, and how a call is checked before it runs."""
