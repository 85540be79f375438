"""Links to a set of peers that changes while they are kept."""
