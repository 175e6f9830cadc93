"""Languages given by patterns: bounded Dyck languages and sequences of word classes."""
