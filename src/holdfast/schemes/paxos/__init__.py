"""Multi-Paxos: 2f+1 replicas that behave as one (D4)."""
