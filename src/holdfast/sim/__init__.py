"""The simulator: nodes that exchange messages in virtual time."""
