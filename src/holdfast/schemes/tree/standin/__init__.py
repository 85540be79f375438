"""Stand-ins: a broker that failed is replaced while the network runs (D0).

The map of the network says who stands in for whom; all else the stand-in learns from the neighbours of the broker
that it replaces, and from nobody else (D0-B2, D0-C18). It is a broker of the network like any other from the first
moment on: special are how it comes by its tables, and what becomes of events meanwhile.
"""
