"""The kernel: what a protocol machine is given, what it may ask for, and nothing else."""
