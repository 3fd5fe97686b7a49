"""Files that survive: whole lines, one lock, typed disk errors. Knows no room's records."""
