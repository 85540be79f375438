"""Traces: what happened in a run, row by row; checkers over them; the story of one event.

Nothing here opens a file or reads a clock: a trace is lines and rows, and who has them hands them in.
"""
