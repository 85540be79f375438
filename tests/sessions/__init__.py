"""Both sides of sessions: the core, the broker's host, the client."""
