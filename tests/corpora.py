"""Real text for tests, from Python's own documentation, so that nothing has to be downloaded."""

from __future__ import annotations

import re
from pydoc_data.topics import topics


def pydoc_sentences(limit: int | None = None) -> list[list[str]]:
    """The sentences of `pydoc_data.topics` as lower-case words, the first `limit` of them if a limit is given."""
    text = "\n\n".join(topics[name] for name in sorted(topics))
    pieces = (re.findall(r"[a-z]+", piece) for piece in re.split(r"\n\s*\n|[.:;?!]\s", text.lower()))
    return [piece for piece in pieces if piece][:limit]
