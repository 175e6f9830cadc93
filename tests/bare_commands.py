"""Every command on an example, as it must run where only the core dependencies are installed.

    python -m bare_commands DIR EXAMPLES

runs in DIR those that need an extra, with all optional packages blocked, and prints JSON: [[words, code, stderr], …].
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import NamedTuple

from typer.core import TyperGroup

ROOT = Path(__file__).parents[1]
MODULES = {"scikit-learn": "sklearn"}  # packages whose module has another name; '-' is written '_' in any case
REQUIRED = {  # modules that come with another
    "jinja2": {"markupsafe"},
    "fastapi": {"starlette"},
    "transformers": {"tokenizers"},
    "transformer_lens": {"torch"},
    "onnx": {"onnxscript"},
}
SWEEP = """sandbox = "markov"
model = "transformer"
set = {layers = 1, heads = 1, d_model = 8, units = 8, length = 8, steps = 2, batch = 2, test_examples = 4}
"""
RESULT = {"format": "vitrify circuit result", "version": 2, "name": "majority", "edges": [["embed", "output"]]}


class Case(NamedTuple):
    """A command line, the extra it must ask for if it needs one, and its exit code without an extra."""

    words: str
    extra: str = ""
    code: int = 0


CASES = (
    Case("build {examples}/abba.regex -o net --max-length 8 --certify"),
    Case("build {examples}/weather.arpa -o ngram --max-length 16"),
    Case("analyze {examples}/abba.regex"),
    Case("info net"),
    Case("explain net"),
    Case("run net a b b a"),
    Case("run ngram sun --generate 3"),
    Case("build {examples}/weather.txt --order 2 -o text"),
    Case("perplexity text {examples}/week.txt"),
    Case("score text {examples}/week.txt"),
    Case("certify net --mutants 3"),
    Case("recheck net"),
    Case("compare net net --max-length 4"),
    Case("extract net --max-length 8 -o read", "extract"),
    Case("bound"),
    Case("bound induction --parameters"),
    Case("refute ngram --task induction", code=1),  # it succeeds
    Case("list"),
    Case("show R14"),
    Case("new claim mine"),
    Case("check R14"),
    Case("check ./mine.py"),
    Case("check energy_decides_if_gradient_flow", "flow"),
    Case("plan G3"),
    Case("evidence"),
    Case("figure", "report"),
    Case("atlas --only R14", "report"),
    Case("train markov transformer length=8 d_model=8 steps=2 batch=2 test_examples=4 --store runs"),
    Case("sweep sweep.toml --dry-run"),
    Case("sweep sweep.toml --on local-ray", "ray"),
    Case("data"),
    Case("data markov"),
    Case("data markov --out rows", "tables"),
    Case("plot", "report"),
    Case("runs"),
    Case("runs --export runs.csv", "tables"),
    Case("runs --curves curves.parquet", "tables"),
    Case("runs --tensorboard events", "tensorboard"),
    Case("serve", "web"),
    Case("export net --to torch", "torch"),
    Case("export net --to hf", "hf"),
    Case("export net --to transformer-lens", "transformer-lens"),
    Case("export net --to onnx", "onnx"),
    Case("import exported -o imported"),
    Case("diagnose"),
    Case("diagnose {examples}/models/in_jax.py:lstm --tasks parity --steps 2 --seeds 1 --lr 0.01 --rows 4"),
    Case("diagnose {examples}/models/in_jax.py:lstm --html report.html", "report"),
    Case("diagnose exported", "hf"),
    Case("benchmark-circuits list"),
    Case("benchmark-circuits make puzzles majority"),
    Case("benchmark-circuits score puzzles/answers/majority.json result.json"),
    Case("benchmark-circuits run random puzzles -o entry.json"),
    Case("benchmark-circuits table entry.json"),
    Case("benchmark-circuits draw puzzles/answers/majority.json"),
    Case("benchmark-circuits features puzzles/answers/majority.json probes.json"),
    Case("benchmark-circuits dataset puzzle-set majority"),
)
FIRST = ("build", "train")  # what the others read


def names(group: TyperGroup, before: str = "") -> Iterator[str]:
    """Yield the commands of a group, and those of the groups in it, in full."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from names(command, f"{before}{name} ")
        else:
            yield before + name


def prepare(folder: Path) -> None:
    """Write the files that cases read and no command makes: a sweep, a circuit, and an export to torch."""
    import vitrify as v
    from vitrify.interop import torch_folder

    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "result.json").write_text(json.dumps(RESULT))
    (folder / "probes.json").write_text(json.dumps({**RESULT, "probes": {}}))
    (folder / "exported").mkdir()
    torch_folder.write(v.build(v.Automaton.from_regex("(ab|ba)*"), max_length=8), folder / "exported", "float32")


def problem(case: Case, code: int, stderr: str) -> str | None:
    """Return how a command that ended differs from what its case expects, or None."""
    lines = [line for line in stderr.splitlines() if line.startswith("error:")]
    if "Traceback" in stderr:
        return f"{case.words}: {stderr}"
    if case.extra:
        fits = code == 2 and len(lines) == 1 and lines[0].endswith(f"pip install 'vitrify[{case.extra}]'")
        return None if fits else f"{case.words}: exit code {code}, {stderr!r}; it must ask for {case.extra!r}"
    return None if code == case.code else f"{case.words}: exit code {code}, {stderr!r}"


@cache
def extras() -> Mapping[str, frozenset[str]]:
    """Return the modules of every extra, also of those that it includes."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    def modules(extra: str) -> frozenset[str]:
        included: set[str] = set()
        for requirement in stated[extra]:
            package, _, options = requirement.partition("[")
            if package == "vitrify":
                included.update(*map(modules, options.rstrip("]").split(",")))
            else:
                bare = package.partition(">")[0]
                included.add(MODULES.get(bare, bare.replace("-", "_")))
        return frozenset(included.union(*(REQUIRED.get(module, set()) for module in included)))

    return {extra: modules(extra) for extra in stated}


class Blocked(MetaPathFinder):
    """An import hook under which the packages of all extras are missing."""

    def find_spec(self, name: str, *_: object) -> None:
        if any(name.partition(".")[0] in modules for modules in extras().values()):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(folder: Path, examples: str) -> None:
    """Run the cases that need an extra, and those that they read from."""
    sys.meta_path.insert(0, Blocked())
    from command_line import vitrify

    prepare(folder)
    results = []
    for case in CASES:
        if case.extra or case.words.split()[0] in FIRST:
            done = vitrify(*case.words.format(examples=examples).split(), cwd=folder)
            results.append((case.words, done.returncode, done.stderr))
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
