"""Learning: many members in one compiled program, against the exact optimum of a sandbox."""
