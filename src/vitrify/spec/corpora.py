"""Real text that every Python carries, so that nothing has to be downloaded."""

from __future__ import annotations

import re


def pydoc_sentences(limit: int | None = None) -> list[list[str]]:
    """The sentences of Python's own help texts as lower-case words, the first `limit` of them if a limit is given."""
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name] for name in sorted(topics))
    pieces = (re.findall(r"[a-z]+", piece) for piece in re.split(r"\n\s*\n|[.:;?!]\s", text.lower()))
    return [piece for piece in pieces if piece][:limit]
