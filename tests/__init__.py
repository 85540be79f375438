"""Tests of Holdfast. Helpers that several of them share are imported as tests.<module>."""
