"""What is to be built: mathematics with its own semantics, read from real file formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.errors import SpecError

if TYPE_CHECKING:
    from vitrify.spec.automaton import Automaton
    from vitrify.spec.ngram import NGramModel
    from vitrify.spec.patterns import WordPatterns

SUFFIXES = {
    ".arpa": "n-gram language model",
    ".arpa.gz": "n-gram language model, compressed",
    ".automaton.json": "finite automaton",
    ".regex": "regular expression",
    ".patterns": "patterns over word classes",
}


def read_spec(path: Path) -> NGramModel | Automaton | WordPatterns:
    """The spec in a file, its kind told by the end of the file's name."""
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if path.name.endswith(s)), None)
    if suffix is None:
        kinds = ", ".join(f"{s} ({kind})" for s, kind in SUFFIXES.items())
        raise SpecError([f"{path}: the kind of a spec is told by the end of its name, one of {kinds}"])
    if suffix.startswith(".arpa"):
        from vitrify.spec.ngram import NGramModel

        return NGramModel.read(path)
    if suffix == ".patterns":
        from vitrify.spec.patterns import WordPatterns

        return WordPatterns.read(path)
    from vitrify.spec.automaton import Automaton

    return Automaton.read(path)
