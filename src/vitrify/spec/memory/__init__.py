"""Stored associations: key-value pairs, facts, and tasks with templates."""
