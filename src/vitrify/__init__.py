"""Compile automata, grammars, n-gram models and programs into networks with exact, labelled weights; verify them.

All public names of the library; `docs/library.md` has them on one page. `import vitrify` is cheap: each name is
imported from its module when it is first used.

>>> import vitrify as v
>>> spec = v.read("cyclic:3")
>>> net = v.build(spec, max_length=8)
>>> v.run(net, ["1", "1", "0"]).states
('0', '1', '2', '2')
>>> v.certify(net, spec, max_length=6).verdict
'holds'
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitrify.bounds.calculators.catalogue import bound as bound
    from vitrify.certification import certify as certify
    from vitrify.certification import mutants as mutants
    from vitrify.certification import mutation_test as mutation_test
    from vitrify.certification.evidence import Evidence as Evidence
    from vitrify.claims.catalogue import Outcome as Outcome
    from vitrify.claims.catalogue import find, run_claim
    from vitrify.constructions.approximation import approximate as approximate
    from vitrify.constructions.catalogue import build as build
    from vitrify.errors import VitrifyError as VitrifyError
    from vitrify.extraction import Extraction as Extraction
    from vitrify.extraction import extract as extract
    from vitrify.interop.data import write_data as write_data
    from vitrify.interop.diagnose.battery import Budget as Budget
    from vitrify.interop.diagnose.battery import diagnose as diagnose
    from vitrify.interop.export import export as export
    from vitrify.interop.nets import load as load
    from vitrify.interop.tracr.reader import from_tracr as from_tracr
    from vitrify.learn.models import catalogue as models
    from vitrify.learn.recipe import Recipe as Recipe
    from vitrify.learn.runs import Run as Run
    from vitrify.learn.store import RunStore as RunStore
    from vitrify.learn.train import train as train
    from vitrify.net.answers import Answer as Answer
    from vitrify.net.answers import run as run
    from vitrify.net.explain import explain as explain
    from vitrify.net.folder import save as save
    from vitrify.net.generate import generate as generate
    from vitrify.net.inference import trace as trace
    from vitrify.net.scoring import score as score
    from vitrify.net.trace import Trace as Trace
    from vitrify.net.weights import Sizes as Sizes
    from vitrify.net.weights import Weights as Weights
    from vitrify.rechecking import recheck as recheck
    from vitrify.report.live import GlassBox as GlassBox
    from vitrify.report.live import glass_box as glass_box
    from vitrify.sandboxes import catalogue as sandboxes
    from vitrify.sandboxes.catalogue import examples as examples
    from vitrify.spec import find_spec
    from vitrify.spec.automata.analysis import analyze as analyze
    from vitrify.spec.automata.automaton import Automaton as Automaton
    from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton as ProbabilisticAutomaton
    from vitrify.spec.automata.tightness import tightness as tightness
    from vitrify.spec.computation.circuit import Circuit as Circuit
    from vitrify.spec.computation.connectivity import Connectivity as Connectivity
    from vitrify.spec.computation.probabilistic_turing import ProbabilisticTuringMachine as ProbabilisticTuringMachine
    from vitrify.spec.computation.turing import TuringMachine as TuringMachine
    from vitrify.spec.geometry.cpwl import Cpwl as Cpwl
    from vitrify.spec.geometry.maxout import Maxout as Maxout
    from vitrify.spec.geometry.scene import Scene as Scene
    from vitrify.spec.grammars.grammar import Grammar as Grammar
    from vitrify.spec.languages.dyck import Dyck as Dyck
    from vitrify.spec.languages.word_patterns import WordPatterns as WordPatterns
    from vitrify.spec.logic.crasp import Crasp as Crasp
    from vitrify.spec.logic.ltl import Formula as Formula
    from vitrify.spec.memory.associations import Associations as Associations
    from vitrify.spec.memory.facts import Facts as Facts
    from vitrify.spec.memory.knowledge import Knowledge as Knowledge
    from vitrify.spec.ngrams.model import NGramModel as NGramModel
    from vitrify.spec.programs.program import Program as Program
    from vitrify.spec.tasks import catalogue as tasks
    from vitrify.spec.tasks.catalogue import Task as Task

    claim, check, read = find, run_claim, find_spec
    model, sandbox, task = models.make, sandboxes.make, tasks.make

__version__ = "0.2.0"

# The module of each public name: those that are imported above for type checkers, and those with another name there.
_IMPORT = re.compile(r"^    from vitrify\.(\S+) import (\w+) as \2$", re.MULTILINE)
PUBLIC = {name: (module, name) for module, name in _IMPORT.findall(Path(__file__).read_text(encoding="utf-8"))} | {
    "check": ("claims.catalogue", "run_claim"),
    "claim": ("claims.catalogue", "find"),
    "model": ("learn.models.catalogue", "make"),
    "read": ("spec", "find_spec"),
    "sandbox": ("sandboxes.catalogue", "make"),
    "task": ("spec.tasks.catalogue", "make"),
}


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'vitrify' has no attribute {name!r}; it has {', '.join(PUBLIC)}")
    module, inside = PUBLIC[name]
    return getattr(import_module(f"vitrify.{module}"), inside)


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
