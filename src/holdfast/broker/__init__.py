"""From a site file to an assembled node: the only place that names concrete parts."""
