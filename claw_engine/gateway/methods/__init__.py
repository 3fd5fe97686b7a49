"""The method table's families, one file each."""
