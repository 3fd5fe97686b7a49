"""Harness for the decision core: generated commands against an independent shell parser, races."""
