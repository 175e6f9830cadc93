"""Kinds of facts about variants of transformers and about problems, each with its source.

A fact about all nets of a variant is the theorem of its source. Where part of it is executed in this project, `by`
names the claim or construction, and says which part. Tags of sources: [T] text read, [A] abstract read, [S] secondary
account, [K] from memory, [D] derived here, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from vitrify.bounds.survey.models import ModelVariant, Scope

How = Literal["is in", "by a change of letters", "by an AC⁰ reduction"]


@dataclass(frozen=True)
class Executed:
    """A claim of the catalogue (by name and id), or a construction (without id), and what it executes of a fact."""

    name: str
    what: str
    claim_id: str = ""

    def __str__(self) -> str:
        return self.claim_id or f"construction {self.name}"


@dataclass(frozen=True)
class Built:
    """Nets of a variant recognize a language, or each language of a class."""

    model: ModelVariant
    target: str
    scope: Scope
    source: str
    by: Executed | None = None


@dataclass(frozen=True)
class Inside:
    """Whatever nets of a variant recognize is in a class."""

    model: ModelVariant
    inside: str
    scope: Scope
    source: str
    by: Executed | None = None


@dataclass(frozen=True)
class Refuted:
    """No net of a variant recognizes a language."""

    model: ModelVariant
    problem: str
    scope: Scope
    source: str
    by: Executed | None = None


@dataclass(frozen=True)
class Outside:
    """A problem is not in a class; `unless` is an open equation or inclusion under which it is."""

    problem: str
    outside: str
    source: str
    unless: str = ""


@dataclass(frozen=True)
class Below:
    """A problem or class is in another class, or reduces to another problem."""

    lower: str
    upper: str
    source: str
    how: How = "is in"


Fact: TypeAlias = Built | Inside | Refuted | Outside | Below
