"""Sessions: keys, the index of each agent, transcripts. Knows no run, no model, no gateway."""
