"""Sessions between clients and brokers: the messages, the broker's core, the broker's side and the client."""
