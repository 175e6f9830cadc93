"""Catalogue of tasks: what a network is asked about words, one task per file, `TASK` in each."""
