"""Real text for tests."""

from vitrify.spec.ngrams.families import pydoc_sentences

__all__ = ["pydoc_sentences"]
