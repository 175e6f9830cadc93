"""Is the net right? Exhaustive and sampled examinations, evidence with witnesses, and mutation campaigns."""

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
