"""The program behind every figure in the README."""
