"""The long harnesses: kills, power cuts, bad disks. See docs/durability.md."""
