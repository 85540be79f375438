"""Many brokers as one: who wants what where, and the way of an event from broker to broker.

What the papers ask of a network, and where it is:

- the graph, the tree and each broker's place in it: D0-A1, D1-A2, D1-A7, D1-A8: `holdfast.topology.graph`
- tables and routing: D0-A2, D0-A3, D0-A4, D0-A6, D0-B1, D0-B1.1, D1-B1, D1-B2: `router`
- covering: D2-B3, D2-B3.1, D2-B4, D2-B4.1: `covered`
- the levels of reliability: D1-A10: `settings`
  - repeated subscriptions: D1-A6, D1-B3, D1-C1, D1-C2
  - buffering: D1-A11, D1-A12, D1-B4, D1-B4.1, D1-B4.2, D1-B4.3, D1-C3
  - bypassing: D1-A13, D1-A14, D1-B5, D1-C4
  - both: D1-A15, D1-B6, D1-C5
- lifetimes and what is measured: D1-A4, D1-B10
- the experiments: D1-B9, D1-C7, D1-E1, D1-E2, D1-E3, D1-E4, D1-E5, D1-E6
"""
