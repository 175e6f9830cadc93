"""Specs over real vectors and images: maxout networks, linear regions, scenes of features."""
