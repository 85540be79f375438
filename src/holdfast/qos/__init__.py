"""How likely it is that a subscriber gets an event on time, from the availability of brokers and links: docs/qos.md."""
