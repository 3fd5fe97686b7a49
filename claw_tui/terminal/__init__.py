"""The terminal and its moods: output that never blocks, input that survives, signals, colours.

Each guard is one small module. Nothing here knows a view.
"""
