"""Read a network back from its weights: formulas, linear probes, linear regions."""
