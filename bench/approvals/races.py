SWAPS = []
