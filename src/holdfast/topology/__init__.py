"""Graphs that networks are made of, and shortest paths in them. No time passes here, no I/O."""
