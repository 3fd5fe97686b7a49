"""The gateway room: the method table, who may call what, and how events reach clients."""
