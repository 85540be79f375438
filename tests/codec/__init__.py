"""Bytes and the values that they stand for."""
