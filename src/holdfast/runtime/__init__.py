"""The runtime: nodes over real sockets, clocks and disks. Small on purpose: the simulator can't see it."""
