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
    "n-gram, softmax": ("heads", "softmax", 0),
    "n-gram, hard attention": ("heads", "hard", 0),
    "n-gram, sparsemax": ("layers", "sparsemax", 0),
    "automaton in log depth": ("log-depth", "softmax", 1),
    "automaton, counting": ("commutative", "softmax", 0),
    "automaton, strict masks": ("cascade", "softmax", 0),
    "brackets": ("dyck", "softmax", 0),
    "brackets, ties to the right": ("dyck", "hard", 0),
    "brackets, three masks": ("dyck-recognizer", "softmax", 1),
    "induction": ("k-hop", "softmax", 1),
    "facts": ("facts", "softmax", 0),
    "grammar": ("spans", "softmax", 1),
    "program that looks ahead": ("program", "softmax", 0),
    "words of two masks": ("match3-bigram", "softmax", 0),
    "estimate with norms of groups": ("estimate-norm", "softmax", 0),
    "mixture of experts": ("hidden", "softmax", 1),
    "recurrent net": ("elman", "softmax", 0),
    "reflections": ("householder", "softmax", 0),
    "LSTM": ("dyck-lstm", "softmax", 1),
    "recurrence beside a head": ("turing-hybrid", "softmax", 0),
    "maxout": ("maxout", "hard", 1),
    "graph": ("loop", "softmax", 0),
    "images": ("features", "softmax", 0),
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
HOOKED = ("automaton, strict masks", "brackets, three masks")  # what TransformerLens can be, with hooks for masks
AHEAD = ("program that looks ahead", "words of two masks")  # not GPT-2


@cache
def net(name: str) -> tuple[Weights[Any], Any]:
    """A net and its spec."""
    shape, attention, number = NETS[name]
    entry = ENTRIES[shape]
    spec = SAMPLES[entry.kind][number]
    weights = built(entry, spec, attention)
    assert weights is not None
    return weights, spec


def saved(name: str, folder: Path) -> Path:
    """The model folder of a net."""
    save(net(name)[0], folder, net(name)[1])
    return folder
