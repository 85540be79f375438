"""Tests of traces: the format, the checkers, the story of one event."""
