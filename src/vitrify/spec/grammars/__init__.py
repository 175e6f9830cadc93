"""Context-free grammars: files, charts, depth, exact next-word sets and probabilities."""
