"""Proofs that the ideal of a network computes its spec, for every word: products of states, and lemmas by induction."""
