"""Which neighbours are there, as far as one broker can tell."""
