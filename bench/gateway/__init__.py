"""The network port under load: the engine in one process, its clients in others."""
