"""MLP gadgets: each adds ReLU units to a builder and returns the space they write; `indicators` makes expert units."""
