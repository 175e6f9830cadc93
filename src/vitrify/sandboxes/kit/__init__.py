"""Parts of sandboxes: random draws, exact optima, and base classes."""
