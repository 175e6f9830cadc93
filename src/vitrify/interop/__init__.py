"""Other people's tools: nets and data for them, and back. Each needs an extra, and the rest of vitrify needs none."""
