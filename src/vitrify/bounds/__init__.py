"""Bounds that run: protocols with counted bits, refuters, circuits and calculators."""
