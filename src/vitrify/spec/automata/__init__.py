"""Finite automata, deterministic and probabilistic: files, regular expressions, algebraic analysis."""
