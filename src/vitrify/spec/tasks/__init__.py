"""Catalogue of tasks on words, one task per file, `TASK` in each."""
