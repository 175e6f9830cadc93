"""Catalogue: published bounds as calculators, one file each."""
