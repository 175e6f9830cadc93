"""Networks evaluated in real arithmetic: exact fractions and balls."""
