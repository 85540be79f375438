"""Traces: what happened in a run, row by row; checkers over them; the story of one event."""
