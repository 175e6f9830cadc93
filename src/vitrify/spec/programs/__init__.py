"""Programs of selections and aggregations (RASP): expressions, values, `.rasp` files."""
