"""The scheme `tree`: one broker, or many that are joined by links and route events along a tree of them (D0, D1)."""
