"""Cursors into a broker's log of events: named subscriptions, reading by position, and publishing in stages."""
