"""Oracles: the right answers of a network, from the semantics of its spec."""
