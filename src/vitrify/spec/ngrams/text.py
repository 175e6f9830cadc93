"""Plain text as training or test data of n-gram models: one sentence per line, words between blanks."""

from __future__ import annotations

from pathlib import Path

from vitrify.errors import InputError
from vitrify.spec.formats.text import in_file, text_of
from vitrify.spec.kinds import suffix_of
from vitrify.spec.ngrams.model import NGramModel


def sentences(path: Path) -> list[list[str]]:
    """Return the words of every line that is not blank."""
    return [words for line in text_of(path).splitlines() if (words := line.split())]


def fitted(path: Path, order: int) -> NGramModel:
    """Return the n-gram model that `NGramModel.fit` computes from a text, with `<unk>`."""
    if suffix := suffix_of(path.name):
        raise InputError(f"{path}: a {suffix} file is a spec; leave --order out, which is for plain texts")
    with in_file(str(path)):
        return NGramModel.fit(sentences(path), order, unk=True)
