"""The broker's side of sessions and of the log: what stands between links and the core."""
