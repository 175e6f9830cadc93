"""An ARPA file is evaluated from its own text, by the textbook recursion, with nothing of vitrify in between."""

from __future__ import annotations

import math
from pathlib import Path


class ArpaEvaluator:
    """The n-grams of a well-formed ARPA file in one dictionary, for checking faster evaluators word by word."""

    def __init__(self, path: str | Path) -> None:
        self.ngrams: dict[tuple[str, ...], tuple[float, float]] = {}
        self.order = 0
        length = 0
        for line in Path(path).read_text(encoding="utf-8").split("\n"):
            if line.startswith("\\"):
                length = int(line[1:].split("-")[0]) if line.endswith("-grams:") else 0
                self.order = max(self.order, length)
            elif length and line:
                parts = [part for part in line.replace("\t", " ").split(" ") if part]
                backoff = float(parts[length + 1]) if len(parts) == length + 2 else 0.0
                self.ngrams[tuple(parts[1 : length + 1])] = (float(parts[0]), backoff)

    def log_prob(self, history_words: list[str] | tuple[str, ...], word: str) -> float:
        """The natural log-probability of a word after a history; the caller puts `<s>` before it, or not."""
        context = tuple(history_words)
        while len(context) > self.order - 1:
            context = context[1:]
        return self._log10(context, word) * math.log(10)

    def _log10(self, context: tuple[str, ...], word: str) -> float:
        if (*context, word) in self.ngrams:
            return self.ngrams[(*context, word)][0]
        if not context:
            raise KeyError(f"{word!r} is not among the unigrams")
        weight = self.ngrams[context][1] if context in self.ngrams else 0.0
        return weight + self._log10(context[1:], word)
