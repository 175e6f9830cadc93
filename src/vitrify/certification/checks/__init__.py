"""Run a network on every question of a domain and compare each answer with the oracle's."""
