"""What is to be built: mathematics with its own semantics, read from real file formats."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from vitrify.errors import InputError, SpecError

if TYPE_CHECKING:
    from vitrify.spec.associations import Associations
    from vitrify.spec.automaton import Automaton
    from vitrify.spec.circuit import Circuit
    from vitrify.spec.connectivity import Connectivity
    from vitrify.spec.crasp import Crasp
    from vitrify.spec.dyck import Dyck
    from vitrify.spec.facts import Facts
    from vitrify.spec.grammar import Grammar
    from vitrify.spec.knowledge import Knowledge
    from vitrify.spec.ltl import Formula
    from vitrify.spec.maxout import Maxout
    from vitrify.spec.ngram import NGramModel
    from vitrify.spec.patterns import WordPatterns
    from vitrify.spec.pfsa import ProbabilisticAutomaton
    from vitrify.spec.program_file import Program
    from vitrify.spec.scene import Scene
    from vitrify.spec.tasks.catalogue import Task
    from vitrify.spec.turing import TuringMachine

    Spec: TypeAlias = (
        Associations
        | Automaton
        | Circuit
        | Connectivity
        | Crasp
        | Dyck
        | Facts
        | Formula
        | Grammar
        | Knowledge
        | Maxout
        | NGramModel
        | ProbabilisticAutomaton
        | Program
        | Scene
        | Task
        | TuringMachine
        | WordPatterns
    )

# The end of a file's name: what such a file holds, and the value that reads it (imported when one is read).
SUFFIXES = {
    ".arpa": ("n-gram language model", "ngram", "NGramModel"),
    ".arpa.gz": ("n-gram language model, compressed", "ngram", "NGramModel"),
    ".automaton.json": ("finite automaton", "automaton", "Automaton"),
    ".regex": ("regular expression", "automaton", "Automaton"),
    ".cfg": ("context-free grammar", "grammar", "Grammar"),
    ".pcfg": ("context-free grammar with probabilities", "grammar", "Grammar"),
    ".dyck": ("well-nested brackets of bounded depth", "dyck", "Dyck"),
    ".ltl": ("formula of past-time temporal logic", "ltl", "Formula"),
    ".crasp": ("counting program", "crasp", "Crasp"),
    ".rasp": ("program of selections and aggregations", "program_file", "Program"),
    ".patterns": ("patterns over word classes", "patterns", "WordPatterns"),
    ".knowledge.toml": ("tasks, templates and facts", "knowledge", "Knowledge"),
    ".pairs": ("words and their answers", "associations", "Associations"),
    ".facts": ("subjects, relations and answers", "facts", "Facts"),
    ".maxout.json": ("maxout network", "maxout", "Maxout"),
    ".maxout.safetensors": ("maxout network", "maxout", "Maxout"),
    ".aag": ("Boolean circuit", "circuit", "Circuit"),
    ".connectivity": ("which nodes of a graph are connected", "connectivity", "Connectivity"),
    ".pfsa.json": ("probabilistic automaton", "pfsa", "ProbabilisticAutomaton"),
    ".tm.toml": ("Turing machine", "turing", "TuringMachine"),
    ".scene.toml": ("scene of features in images", "scene", "Scene"),
    ".task.toml": ("task with a question at some positions", "tasks.catalogue", "Task"),
}


def bounded(spec: Spec, depth: int) -> Spec:
    """A grammar cut at a depth: derivations that are deeper are dropped. Nothing else has a depth."""
    from vitrify.spec.grammar import Grammar

    if not isinstance(spec, Grammar):
        raise InputError(
            f"only grammars are cut at a depth, this is a spec of type {type(spec).__name__}: leave it out"
        )
    return spec.cut(depth)


def read_spec(path: Path) -> Spec:
    """The spec in a file, its kind told by the end of the file's name."""
    suffix = next((s for s in sorted(SUFFIXES, key=len, reverse=True) if path.name.endswith(s)), None)
    if suffix is None:
        kinds = ", ".join(f"{s} ({kind})" for s, (kind, _, _) in SUFFIXES.items())
        raise SpecError([f"{path}: the kind of a spec is told by the end of its name, one of {kinds}"])
    _, module, value = SUFFIXES[suffix]
    spec: Spec = getattr(import_module(f"vitrify.spec.{module}"), value).read(path)
    return spec


def find_spec(text: str | Path) -> Spec:
    """The spec that a text names: a family of automata, as cyclic:5, or else a file."""
    from vitrify.spec.automata import named

    return named(str(text)) or read_spec(Path(text))
