"""The survey of what transformers can recognize: its table as data, facts, and the map that follows from them."""
