"""Shared code of claims about training: trials, their measurements as arrays, and one module of measures per topic."""
