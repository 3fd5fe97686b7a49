"""How a console or a command reaches an engine: in process or over a socket."""
