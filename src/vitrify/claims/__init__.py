"""Published claims that run: one file each, found by looking."""
