"""Families of networks to train, one per file: from a few sizes to an architecture and its first weights."""
