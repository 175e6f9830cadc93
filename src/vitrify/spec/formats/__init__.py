"""Text formats of spec files: lines, headers, infix expressions, TOML and JSON with line numbers."""
