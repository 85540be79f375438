"""The simulator: virtual time, seeded faults, every message through the real codec."""
