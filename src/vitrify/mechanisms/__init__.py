"""Ground truth for interpretability: which part of a built network hears which, and puzzles made of that."""
