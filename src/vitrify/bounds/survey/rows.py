"""A row of the survey's table, and whether it follows from the facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vitrify.bounds.survey.closure import SurveyFacts, contained, negative, positive
from vitrify.bounds.survey.models import ModelVariant, Scope
from vitrify.bounds.survey.statements import Executed

Relation = Literal["∋", "∌", "⊇", "⊋", "⊆", "="]
Status = Literal["built here", "refuted here", "cited", "open"]


@dataclass(frozen=True)
class SurveyRow:
    """A result: its variants recognize, miss, contain, lie inside or equal what `about` names.

    `status` says what this project does about it: `built here` and `refuted here` name what executes it; `fragment`
    says what is executed if it is less than the row states for the sizes that are checked.
    """

    number: int
    relation: Relation
    about: tuple[str, ...]
    source: str
    models: tuple[ModelVariant, ...]
    status: Status
    by: tuple[Executed, ...] = ()
    fragment: str = ""
    scope: Scope = "one net"

    @property
    def statement(self) -> str:
        """The relation and what it is about."""
        return f"{self.relation} {', '.join(self.about)}"


def follows(facts: SurveyFacts, row: SurveyRow) -> bool:
    """Return whether a row follows from the facts, for each of its variants and each class or language."""
    return all(_follows(facts, row, model, name) for model in row.models for name in row.about)


def _follows(facts: SurveyFacts, row: SurveyRow, model: ModelVariant, name: str) -> bool:
    near = facts.near(model, row.scope)
    if row.relation == "∌":
        return any(cell.verdict == "no" for cell in negative(near, model, name, row.scope))
    above = row.relation == "⊆" or any(positive(near, model, name, row.scope))
    below = row.relation not in ("⊆", "=") or contained(near, model, name, row.scope)
    return above and below
