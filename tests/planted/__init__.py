"""Planted mistakes of all swarms: each is seen by its recorded seed, and by as many of the next twenty as recorded."""
