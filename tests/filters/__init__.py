"""The filter language, tested from its specification: grammar, semantics, limits, canonical form, covering."""
