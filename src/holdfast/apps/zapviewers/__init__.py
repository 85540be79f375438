"""ZapViewers: who watches what, counted by replicated brokers from the reports of set-top boxes (D4-A10)."""
