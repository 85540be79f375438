"""Applications that are built on Holdfast."""
