"""Who may come in by the network port: secrets, devices, places, limits."""
