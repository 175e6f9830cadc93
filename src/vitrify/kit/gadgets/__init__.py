"""MLP gadgets: each adds ReLU units to a builder and returns what they write; `asking` makes them for experts."""

from vitrify.kit.gadgets.affine import AffineCase, affine_where
from vitrify.kit.gadgets.asking import Question, asking
from vitrify.kit.gadgets.clauses import Asked, Clause, clauses
from vitrify.kit.gadgets.compose import int_compose
from vitrify.kit.gadgets.extremes import minimum
from vitrify.kit.gadgets.features import features
from vitrify.kit.gadgets.gate import Case, choose, gate
from vitrify.kit.gadgets.some import some
from vitrify.kit.gadgets.steps import at_least, cpwl, digits, int_lookup, snap, step, steps
from vitrify.kit.gadgets.table import ANY, table

__all__ = [
    "ANY",
    "AffineCase",
    "Asked",
    "Case",
    "Clause",
    "Question",
    "affine_where",
    "asking",
    "at_least",
    "choose",
    "clauses",
    "cpwl",
    "digits",
    "features",
    "gate",
    "int_compose",
    "int_lookup",
    "minimum",
    "snap",
    "some",
    "step",
    "steps",
    "table",
]
