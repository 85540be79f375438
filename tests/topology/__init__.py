"""Tests of the graphs that networks are made of."""
