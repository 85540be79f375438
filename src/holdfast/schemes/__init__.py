"""Schemes: how the brokers of a site work together, and survive failures. One folder each, and one line in
`holdfast.broker.registry`: docs/schemes.md."""
