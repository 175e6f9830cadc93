"""Searches for inputs on which a network answers wrongly or with a small margin."""
