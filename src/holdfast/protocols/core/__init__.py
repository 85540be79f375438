"""The broker's core: an application of numbered commands, without links, timers or disk."""
