"""The same work in one process, in several, or on a cluster: `map_in_order`."""
