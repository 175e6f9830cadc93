"""Head primitives: each adds one attention head to a builder and returns the space that it writes."""

from vitrify.kit.heads.average import count, mean, weighted_mean, window
from vitrify.kit.heads.logsum import alternatives, floor_below, log_sum
from vitrify.kit.heads.match import alike, cosine_sharpness, last_marked, lookup, recent_match
from vitrify.kit.heads.maximum import maximum, shortfall
from vitrify.kit.heads.place import at_place, earlier
from vitrify.kit.heads.recall import Store, recall
from vitrify.kit.heads.sets import set_attend
from vitrify.kit.heads.shift import itself, shift

__all__ = [
    "Store",
    "alike",
    "alternatives",
    "at_place",
    "cosine_sharpness",
    "count",
    "earlier",
    "floor_below",
    "itself",
    "last_marked",
    "log_sum",
    "lookup",
    "maximum",
    "mean",
    "recall",
    "recent_match",
    "set_attend",
    "shift",
    "shortfall",
    "weighted_mean",
    "window",
]
