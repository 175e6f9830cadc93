"""Bounds and measurements of what lower floating-point precision does to the answers of a network."""
