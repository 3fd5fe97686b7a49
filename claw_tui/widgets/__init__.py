"""Panes that paint themselves line by line; they read the store and post messages."""
