"""Tests that hold the architecture. Every checker is a function that is also fed mutants."""
