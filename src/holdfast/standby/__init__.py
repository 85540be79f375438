"""What runs beside the brokers of a network in which spares stand in for others: it gets brokers that could stand in,
lends some to other sites, and talks with the directory. docs/standin-provision.md."""
