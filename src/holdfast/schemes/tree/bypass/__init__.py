"""Ways around brokers and links that failed (D1-B5): who is up, and where a message for a failed broker goes."""
