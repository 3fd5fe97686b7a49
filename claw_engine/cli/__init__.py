"""The `claw` command: one module a verb, imported only when that verb runs."""
