"""Margins of a network, proved for every word up to its maximum length."""
