"""The protocols: deterministic state machines, one folder each. They do no I/O."""
