"""Head primitives: each adds one attention head to a builder and returns the space that it writes."""
