"""Computation step by step: Boolean circuits, Turing machines, graph connectivity."""
