"""Real text for tests."""

from vitrify.spec.corpora import pydoc_sentences

__all__ = ["pydoc_sentences"]
