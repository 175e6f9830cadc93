"""Is the net right? Exhaustive and sampled examinations, evidence with witnesses, and mutation campaigns.

The package is a verb, too: `vitrify.certify(net, spec)` is `vitrify.certify.certify(net, spec)`.
"""

import sys
from types import ModuleType
from typing import Any

from vitrify.certify.evidence import Evidence, combine, upper_failure_rate
from vitrify.certify.examine import Examination, certify, examination
from vitrify.certify.mutate import Campaign, campaign, mutations

__all__ = [
    "Campaign",
    "Evidence",
    "Examination",
    "campaign",
    "certify",
    "combine",
    "examination",
    "mutations",
    "upper_failure_rate",
]


class _Verb(ModuleType):
    """A module that can be called."""

    def __call__(self, *args: Any, **named: Any) -> Evidence:
        return certify(*args, **named)


sys.modules[__name__].__class__ = _Verb
