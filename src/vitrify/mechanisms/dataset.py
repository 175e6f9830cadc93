"""The circuit puzzles as a dataset folder: models, questions and, in a folder of their own, the true circuits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.files import write_text
from vitrify.mechanisms.puzzle import Puzzle, answer_json, question_json, save_model

CARD = """---
license: apache-2.0
pretty_name: Circuits of compiled transformers
task_categories: [other]
tags: [interpretability, circuits, transformers]
configs:
- config_name: default
  data_files: puzzles.jsonl
---

# Circuits of compiled transformers

{count} small transformers whose true circuits are known, {by_rendering}. Find the edges that the answers depend on.

| path | content |
| --- | --- |
| `puzzles.jsonl` | one line for each puzzle: name, rendering, family, sizes, files |
| `models/NAME/` | architecture (`config.json`) and weights (`model.safetensors`) |
| `questions/NAME.json` | nodes, candidate edges, sequences with donors, what counts as a changed answer, concepts |
| `load_puzzles.py` | reads all of it with NumPy and safetensors only |

The true circuits are not here. Whoever has them scores a method, a Python file with one function:
`vitrify benchmark-circuits run METHOD.py DIR --answers TRUTHS`.

Renderings: *plain* (a compiled construction), *entangled* (the same function, rotated and permuted, with decoys),
*softened* (finite temperatures and noise on all weights), *trained* (gradient descent from the construction with weight
decay, under interchange interventions).

Made by vitrify. Licence: Apache-2.0.
"""

LOADER = '''"""Load the circuit puzzles of this folder: `puzzles()` lists them, `load(name)` reads one."""

import json
from pathlib import Path

from safetensors.numpy import load_file

HERE = Path(__file__).parent


def puzzles():
    """Return one dictionary for each puzzle: name, rendering, family, sizes."""
    lines = (HERE / "puzzles.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def load(name):
    """Return the architecture, the arrays and the question of a puzzle."""
    folder = HERE / "models" / name
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    question = json.loads((HERE / "questions" / f"{name}.json").read_text(encoding="utf-8"))
    return config, load_file(folder / "model.safetensors"), question


if __name__ == "__main__":
    for row in puzzles():
        config, arrays, question = load(row["name"])
        print(row["name"], len(arrays), "arrays,", len(question["edges"]), "edges")
'''


def write_dataset(made: Iterable[tuple[str, Puzzle]], folder: Path, truths: Path) -> Iterator[JsonObject]:
    """Write puzzles, given with their families, to a folder, and the true circuits to another; yield their rows."""
    if truths.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"truths must be outside the folder that solvers get, {folder}, not in {truths}")
    rows = []
    for family, puzzle in made:
        name, weights = puzzle.folder, puzzle.wired.weights
        save_model(puzzle, folder / "models" / name, bare=True)
        _write(folder / "questions" / f"{name}.json", question_json(puzzle))
        _write(truths / f"{name}.json", answer_json(puzzle))
        net = weights.architecture
        row: JsonObject = {"name": name, "puzzle": puzzle.name, "rendering": puzzle.rendering, "family": family}
        row |= {"nodes": len(puzzle.wired.nodes), "edges": len(puzzle.wired.edges), "layers": len(net.turns)}
        row |= {"d_model": net.d_model, "output": net.output.kind, "model": f"models/{name}"}
        rows.append(row | {"question": f"questions/{name}.json", "digest": weights.digest})
        yield rows[-1]
    write_text(folder / "puzzles.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    counts = Counter(str(row["rendering"]) for row in rows)
    by_rendering = ", ".join(f"{count} {rendering}" for rendering, count in counts.items())
    write_text(folder / "README.md", CARD.format(count=len(rows), by_rendering=by_rendering))
    write_text(folder / "load_puzzles.py", LOADER)


def _write(path: Path, data: JsonObject) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(data, ensure_ascii=False) + "\n")
