"""The filter index: both engines against the oracle, and what only an index can get wrong."""
