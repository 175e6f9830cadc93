"""Sandboxes become glass boxes: specs compiled to exact, labelled network weights, certified and checked.

This is the one door to the library; `docs/library.md` has it on one page. What stands behind a name is imported when
the name is first used, so that the door costs nothing.

>>> import vitrify as v
>>> spec = v.read("cyclic:3")
>>> net = v.build(spec, max_length=8)
>>> v.answer(net, ["1", "1", "0"])["states"]
['0', '1', '2', '2']
>>> v.certify(net, spec, max_length=6).verdict
'holds'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vitrify.certify import campaign as campaign
    from vitrify.certify import certify as certify
    from vitrify.certify import mutations as mutations
    from vitrify.claims._kept import kept as kept
    from vitrify.claims.catalogue import find, run_claim
    from vitrify.constructions.catalogue import build as build
    from vitrify.errors import VitrifyError as VitrifyError
    from vitrify.interop.data import write_data as write_data
    from vitrify.learn.models import catalogue as models
    from vitrify.learn.recipe import Recipe as Recipe
    from vitrify.learn.train import train as train
    from vitrify.net import Ledger as Ledger
    from vitrify.net import load as load
    from vitrify.net import save as save
    from vitrify.net.answers import answer as answer
    from vitrify.net.decode import decode as decode
    from vitrify.net.explain import explain as explain
    from vitrify.net.run import trace as trace
    from vitrify.sandboxes import catalogue as sandboxes
    from vitrify.sandboxes.catalogue import rows as rows
    from vitrify.spec import find_spec
    from vitrify.spec.automaton import Automaton as Automaton
    from vitrify.spec.estimate import estimate as estimate
    from vitrify.spec.grammar import Grammar as Grammar
    from vitrify.spec.ngram import NGramModel as NGramModel

    claim, check, read, model, sandbox = find, run_claim, find_spec, models.make, sandboxes.make

__version__ = "0.1.0"

# Every public name: the module that it stands in, and its name there.
PUBLIC = {
    "Automaton": ("spec.automaton", "Automaton"),
    "Grammar": ("spec.grammar", "Grammar"),
    "Ledger": ("net", "Ledger"),
    "NGramModel": ("spec.ngram", "NGramModel"),
    "Recipe": ("learn.recipe", "Recipe"),
    "VitrifyError": ("errors", "VitrifyError"),
    "answer": ("net.answers", "answer"),
    "build": ("constructions.catalogue", "build"),
    "campaign": ("certify", "campaign"),
    "certify": ("certify", "certify"),
    "check": ("claims.catalogue", "run_claim"),
    "claim": ("claims.catalogue", "find"),
    "decode": ("net.decode", "decode"),
    "estimate": ("spec.estimate", "estimate"),
    "explain": ("net.explain", "explain"),
    "kept": ("claims._kept", "kept"),
    "load": ("net", "load"),
    "model": ("learn.models.catalogue", "make"),
    "mutations": ("certify", "mutations"),
    "read": ("spec", "find_spec"),
    "rows": ("sandboxes.catalogue", "rows"),
    "sandbox": ("sandboxes.catalogue", "make"),
    "save": ("net", "save"),
    "trace": ("net.run", "trace"),
    "train": ("learn.train", "train"),
    "write_data": ("interop.data", "write_data"),
}


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'vitrify' has no attribute {name!r}; it has {', '.join(PUBLIC)}")
    module, inside = PUBLIC[name]
    return getattr(import_module(f"vitrify.{module}"), inside)


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
