"""Built nets of many kinds in folders of their own: what exports are tested on."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from samples import ENTRIES, SAMPLES, built
from vitrify.constructions.catalogue import Attention
from vitrify.net.folder import save
from vitrify.net.weights import Weights

NETS: dict[str, tuple[str, Attention, int]] = {  # shape, attention, and which sample of its type of spec
    "n-gram, softmax": ("heads", "soft", 0),
    "n-gram, hard attention": ("heads", "hard", 0),
    "n-gram, sparsemax": ("layers", "sparse", 0),
    "automaton in log depth": ("log-depth", "soft", 1),
    "automaton, counting": ("commutative", "soft", 0),
    "automaton, strict masks": ("cascade", "soft", 0),
    "brackets": ("dyck", "soft", 0),
    "brackets, ties to the right": ("dyck", "hard", 0),
    "brackets, three masks": ("dyck-recogniser", "soft", 1),
    "induction": ("k-hop", "soft", 1),
    "facts": ("facts", "soft", 0),
    "grammar": ("spans", "soft", 1),
    "program that looks ahead": ("program", "soft", 0),
    "words of two masks": ("match3-bigram", "soft", 0),
    "estimate with norms of groups": ("estimate-norm", "soft", 0),
    "mixture of experts": ("hidden", "soft", 1),
    "recurrent net": ("elman", "soft", 0),
    "reflections": ("householder", "soft", 0),
    "LSTM": ("dyck-lstm", "soft", 1),
    "recurrence beside a head": ("turing-hybrid", "soft", 0),
    "maxout": ("maxout", "hard", 1),
    "graph": ("loop", "soft", 0),
    "images": ("features", "soft", 0),
}
UNIFORM = (  # what GPT-2 and TransformerLens can be
    "n-gram, softmax",
    "automaton in log depth",
    "automaton, counting",
    "brackets",
    "induction",
    "facts",
    "grammar",
    "program that looks ahead",
    "words of two masks",
)
AHEAD = ("program that looks ahead", "words of two masks")  # not GPT-2


@cache
def net(name: str) -> tuple[Weights[Any], Any]:
    """A net and its spec."""
    shape, attention, number = NETS[name]
    entry = ENTRIES[shape]
    spec = SAMPLES[entry.spec][number]
    weights = built(entry, spec, attention)
    assert weights is not None
    return weights, spec


def saved(name: str, folder: Path) -> Path:
    """The model folder of a net."""
    save(net(name)[0], folder, net(name)[1])
    return folder
