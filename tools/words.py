"""Count the words that a stranger trips over: names that say nothing, constants without a quantity, vague docstrings.

    python tools/words.py [--worst 10]    exits with 1 where a count is above its limit

The counts are of `src`: every occurrence of a name in code, not of the
word in comments and strings.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
VERBS = frozenset({"told", "asked", "said", "kept", "given", "whole"})
CONSTANTS = frozenset({"MOST", "NEAR", "FEW", "EVERY", "ABOVE", "WHOLE"})
QUESTIONS = ("What", "Who", "Whether", "How", "Those", "That")
LIMITS = {"found": 150, "told, asked, said, kept, given, whole": 200, "MOST, NEAR, FEW, EVERY, ABOVE, WHOLE": 0}
MAX_VAGUE_SHARE = 0.05  # of docstrings


def names(text: str) -> Iterator[str]:
    """Yield every name in the code of a file."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.string


def docstrings(text: str) -> Iterator[str]:
    """Yield the docstrings of a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring


def main() -> int:
    parser = argparse.ArgumentParser(description="Count names and docstrings that say nothing.")
    parser.add_argument("--worst", type=int, default=10, help="files to list")
    counts: Counter[str] = Counter()
    worst: Counter[str] = Counter()
    docs = vague = 0
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        here = Counter(names(text))
        tally = [here["found"], sum(here[name] for name in VERBS), sum(here[name] for name in CONSTANTS)]
        counts.update(dict(zip(LIMITS, tally, strict=True)))
        starts = [docstring.split()[0].rstrip(",:") in QUESTIONS for docstring in docstrings(text)]
        docs, vague = docs + len(starts), vague + sum(starts)
        worst[str(path.relative_to(SRC))] = sum(tally) + sum(starts)
    for name, limit in LIMITS.items():
        print(f"{counts[name]:6,}  of at most {limit:<5} {name}")
    share = f"{vague / docs:.1%} (at most {MAX_VAGUE_SHARE:.0%})"
    print(f"{vague:6,}  of {docs:,} docstrings begin with {', '.join(QUESTIONS)}: {share}")
    for name, count in worst.most_common(parser.parse_args().worst):
        print(f"{count:6,}  {name}")
    return int(vague > MAX_VAGUE_SHARE * docs or any(counts[name] > limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
