"""Evidence: the verdict of a check as a tree of values, with its domains, quantities, criteria and parts.

    Evidence
      verdict       holds | fails | reversed | not reached | undecided
      domains       what was run: a kind of case, a method, how many, how long
      quantities    sizes and errors: declared by a formula or a tolerance, and measured
      criteria      thresholds on values measured once per seed, each with its own verdict
      witness       one concrete case that fails
      links         how far the two links between stored weights and spec are established
      proof         the margins that were proved for all words at once (`margins/`)
      figure        the data that the claim's figure is drawn from
      parts         the evidence of each subject, by name

Everything here is data: no field is a sentence that another module would have to take apart. Sentences are made where
people read them, in `report/` and `cli/`. `Evidence.from_json(e.to_json()) == e` for every evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias

from vitrify.certification.domains import CaseKind, Domain, JsonData, Link, Method, Scope, tested_links
from vitrify.encoding import Json, JsonMapping
from vitrify.errors import InputError
from vitrify.intervals import mean_interval

__all__ = ["CaseKind", "Domain", "JsonData", "Link", "Method", "Scope", "tested_links"]  # imported from here, too

Verdict = Literal["holds", "fails", "reversed", "not reached", "undecided"]
WORST_FIRST: tuple[Verdict, ...] = ("fails", "reversed", "not reached", "undecided", "holds")
Relation = Literal["=", "<=", ">="]
Progress = Callable[[int, int], None]  # cases done, cases in all
Interval: TypeAlias = tuple[float, float]
LARGEST_ERROR = "largest error"  # the quantity whose declared value is the error that an answer may have
ROUNDING = 1e-9  # errors up to here are those of float64


@dataclass(frozen=True)
class Quantity(JsonData):
    """A measured value and, where a `relation` is given, what it must be: equal to, at most or at least `declared`."""

    name: str
    measured: Any
    declared: Any = None
    relation: Relation | None = None
    interval: Interval | None = None

    def __post_init__(self) -> None:
        self._normalize("measured", "declared")
        self._tuples("interval")
        if self.relation not in (None, "=", "<=", ">="):
            raise InputError(f"{self.name}: a relation is one of =, <=, >=, not {self.relation!r}")

    @property
    def met(self) -> bool | None:
        """Return whether the measured value is as declared; None where nothing was declared."""
        if self.relation is None:
            return None
        if self.relation == "=":
            return bool(self.measured == self.declared)
        if self.measured is None or self.declared is None:
            return False
        return bool(self.measured <= self.declared if self.relation == "<=" else self.measured >= self.declared)


@dataclass(frozen=True)
class Criterion(JsonData):
    """A threshold on a quantity, judged by its values (one per seed) or by the interval of an estimate.

    By values: `needed` of them must lie in the range. By the interval (`estimated`): all of it must. A criterion that
    is a `premise` says that the setting of the claim was reached at all: where it is not met, what it is a premise of
    is undecided. `statement` is the key of the claim's statement that it belongs to; a premise without one belongs to
    all. `null` is the value under the rival explanation, `published` the one in the source. `values` may be empty in
    evidence of earlier versions, which recorded the summary alone.
    """

    name: str
    needed: int
    passed: int
    total: int
    mean: float
    interval: Interval
    lowest: float
    highest: float
    at_least: float = -math.inf
    at_most: float = math.inf
    premise: bool = False
    values: tuple[float, ...] = ()
    statement: str = ""
    estimate: bool = False
    null: float | None = None
    published: float | None = None

    def __post_init__(self) -> None:
        self._tuples("interval", "values")
        self._normalize("mean", "lowest", "highest", "at_least", "at_most")

    @classmethod
    def judged(
        cls,
        name: str,
        values: Iterable[float],
        *,
        at_least: float = -math.inf,
        at_most: float = math.inf,
        share: float = 1.0,
        premise: bool = False,
        statement: str = "",
    ) -> Self:
        """Return the criterion that at least a `share` of the values lies in a range; one that is no number does not.

        >>> Criterion.judged("loss", [0.1, 0.1, 0.3], at_most=0.2, share=2 / 3).verdict
        'holds'
        """
        numbers = [float(value) for value in values]
        if not numbers:
            raise InputError(f"{name}: no values to judge")
        passed = sum(at_least <= value <= at_most for value in numbers)
        return cls(
            name,
            math.ceil(share * len(numbers) - 1e-9),
            passed,
            len(numbers),
            sum(numbers) / len(numbers),
            mean_interval(numbers),
            min(numbers),
            max(numbers),
            at_least,
            at_most,
            premise,
            tuple(numbers),
            statement,
        )

    @classmethod
    def estimated(
        cls,
        name: str,
        value: float,
        interval: Interval,
        *,
        at_least: float = -math.inf,
        at_most: float = math.inf,
        statement: str = "",
        null: float | None = None,
        published: float | None = None,
        values: Sequence[float] = (),
    ) -> Self:
        """Return the criterion that the whole interval of an estimate lies in a range; `values` are those of the units.

        >>> Criterion.estimated("slope", 1.4, (1.2, 1.6), at_least=1.1, null=1.0, published=2.0).verdict
        'not reached'
        """
        low, high = (float(end) for end in interval)
        inside = at_least <= low and high <= at_most
        units = tuple(float(each) for each in values)
        ends = min(units, default=low), max(units, default=high)
        ranges = 1, int(inside), 1, float(value), (low, high), *ends, at_least, at_most, False, units
        return cls(name, *ranges, statement, True, null, published)

    @property
    def met(self) -> bool:
        """Return whether enough values, or the whole interval, lie in the range."""
        return self.passed >= self.needed and (not self.estimate or self.verdict == "holds")

    @property
    def verdict(self) -> Verdict:
        """The verdict on this criterion alone.

        For an estimate: *reversed* where the interval lies on the other side of the null value; *not reached* where it
        lies on the claim's side, but beside the range or the published value; *undecided* where it is too wide: only a
        part of it lies in the range, and it does not exclude the published value.
        """
        if not self.estimate:
            return "holds" if self.passed >= self.needed else "undecided" if self.premise else "fails"
        low, high = self.interval
        if not (math.isfinite(low) and math.isfinite(high)):
            return "undecided"
        around = self.published is None or low <= self.published <= high
        if self.passed:
            return "holds" if around else "not reached"
        touches = low <= self.at_most and high >= self.at_least
        if self.null is None or self.at_least <= self.null <= self.at_most or low <= self.null <= high:
            return "undecided" if touches else "fails"
        if (low > self.null) != (self.at_least > self.null):
            return "reversed"
        return "undecided" if touches and around else "not reached"


@dataclass(frozen=True)
class Evidence(JsonData):
    """The verdict of one check, and what it rests on.

    `cases` is the number of judged answers: a check ends at the first wrong one. `checked` holds the net and the spec
    that were compared, if any were, and the evidence of that check alone; it is not part of the JSON form.
    """

    verdict: Verdict
    cases: int = 0
    domains: tuple[Domain, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    witness: JsonMapping | None = None
    seed: int | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    proof: JsonMapping | None = None
    figure: JsonMapping = field(default_factory=dict)
    parts: Mapping[str, Evidence] = field(default_factory=dict)
    checked: tuple[object, object, Evidence] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._normalize("witness", "proof", "figure", "cases", "seconds")
        object.__setattr__(self, "seconds", round(self.seconds, 3))
        for name in ("witness", "proof"):
            object.__setattr__(self, name, getattr(self, name) or None)
        for name in ("domains", "quantities", "criteria", "notes", "links"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def from_json(cls, data: JsonMapping) -> Self:
        """Return the evidence that `to_json` was called on."""
        plain = {key: value for key, value in data.items() if key not in (*_LISTS, "parts")}
        lists: dict[str, Any] = {
            key: tuple(kind.from_json(entry) for entry in data.get(key, ())) for key, kind in _LISTS.items()
        }
        parts = {name: Evidence.from_json(part) for name, part in data.get("parts", {}).items()}
        return replace(super().from_json(plain), **lists, parts=parts)

    def to_json(self) -> dict[str, Json]:
        """Return plain JSON data; fields that hold their default are left out."""
        return super(Evidence, replace(self, checked=None)).to_json()

    # Reading the tree

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods of all parts: those of the domains, and `proved` where both links are."""
        keys = [domain.key for domain in self.domains]
        keys += [Method.PROVED.value] if self.headline is not None and self.headline.scope.proved else []
        return tuple(dict.fromkeys([*keys, *(key for part in self.parts.values() for key in part.methods)]))

    @property
    def headline(self) -> Link | None:
        """The weaker of the two links; None where no network was compared with a spec."""
        return max(self.links, key=lambda link: tuple(Scope).index(link.scope), default=None)

    @property
    def allowed_error(self) -> float:
        """The distance from the spec's numbers at which answers count as right; 0 where it is for rounding alone."""
        error = self.quantity(LARGEST_ERROR)
        allowed = 0.0 if error is None or error.declared is None else float(error.declared)
        return allowed if self.links and allowed > ROUNDING else 0.0

    @property
    def figures(self) -> dict[str, JsonMapping]:
        """The data of the figure by subject: that of the parts where there are any."""
        return {name: part.figure for name, part in self.parts.items() if part.figure}

    @property
    def statements(self) -> dict[str, Verdict]:
        """The verdict on each statement of a claim: the worst over the parts."""
        verdicts = {key: verdict for key, verdict in statement_verdicts(self.criteria).items() if key}
        for part in self.parts.values():
            for key, verdict in part.statements.items():
                verdicts[key] = worst_of((verdict, verdicts.get(key, verdict)))
        return verdicts

    def leaves(self) -> Iterator[tuple[tuple[str, ...], Evidence]]:
        """Yield every evidence without parts, with the path of names to it."""
        if not self.parts:
            yield (), self
        for name, part in self.parts.items():
            for path, leaf in part.leaves():
                yield (name, *path), leaf

    def quantity(self, name: str) -> Quantity | None:
        """The quantity of that name, of this evidence itself; None if there is none."""
        return next((each for each in self.quantities if each.name == name), None)

    def measured(self, name: str) -> Any:
        """The measured value of a quantity; None if there is none of that name."""
        each = self.quantity(name)
        return None if each is None else each.measured

    # Making new evidence

    def adding(self, *quantities: Quantity) -> Evidence:
        """Return the evidence with more quantities; one that is not met turns `holds` into `fails`."""
        missed = {
            each.name: {"declared": each.declared, "measured": each.measured}
            for each in quantities
            if each.met is False
        }
        longer = replace(self, quantities=(*self.quantities, *quantities))
        if missed and self.verdict == "holds":
            return replace(longer, verdict="fails", witness=missed)
        return longer

    def _repr_html_(self) -> str:
        from vitrify.markup import badge, card, facts, folded, table, tag

        words = [f"{self.cases:,} cases", *self.methods, f"{self.seconds:.3g} s"]
        words += [f"seed {self.seed}"] if self.seed is not None else []
        rows = [(d.kind, d.key, d.count, d.shortest, d.longest) for d in self.domains]
        pieces = [table(["cases", "method", "number", "shortest", "longest"], rows, "domains")] if rows else []
        if self.witness is not None:
            pieces.append(folded("a case that fails", facts(self.witness), unfolded=True))
        if self.quantities:
            lines = [(q.name, q.relation, q.declared, q.measured) for q in self.quantities]
            pieces.append(table(["quantity", "", "declared", "measured"], lines, "quantities"))
        if self.criteria:
            judged = [
                (c.name, c.at_least, c.at_most, c.mean, f"{c.passed}/{c.total}", c.verdict) for c in self.criteria
            ]
            pieces.append(table(["criterion", "at least", "at most", "mean", "seeds", "verdict"], judged, "quantities"))
        if self.proof is not None:
            pieces.append(folded("margins, for all words at once", facts(self.proof)))
        if self.notes:
            pieces.append(folded("notes", tag("ul", *(tag("li", note) for note in self.notes)), unfolded=True))
        pieces += [folded(name, part._repr_html_()) for name, part in self.parts.items()]
        return card(tag("span", badge(self.verdict), f" {', '.join(words)}"), *pieces)


_LISTS: dict[str, type[JsonData]] = {"domains": Domain, "quantities": Quantity, "criteria": Criterion, "links": Link}


def quantities(declared: JsonMapping, measured: JsonMapping, relation: Relation = "=") -> tuple[Quantity, ...]:
    """Return a quantity for every name: those that are declared must be what is measured, the others are only stated.

    >>> [(q.name, q.met) for q in quantities({"layers": 2}, {"layers": 2, "units": 7})]
    [('layers', True), ('units', None)]
    """
    return tuple(
        Quantity(name, measured.get(name), declared.get(name), relation if name in declared else None)
        for name in dict.fromkeys([*declared, *measured])
    )


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the first of the verdicts in the order fails, reversed, not reached, undecided, holds."""
    return min(verdicts, key=WORST_FIRST.index, default="holds")


def judged(criteria: Sequence[Criterion], domains: Sequence[Domain], **more: Any) -> Evidence:
    """Return the verdict of criteria: the worst of the verdicts on their statements."""
    verdict = worst_of(statement_verdicts(criteria).values())
    missed = [each for each in criteria if not each.met]
    worst = next((each for each in missed if each.verdict == verdict), None)
    witness: dict[str, Any] | None = None
    if worst is not None and worst.estimate:
        witness = {"criterion": worst.name, "interval": list(worst.interval)}
    elif worst is not None:
        outside = [at for at, value in enumerate(worst.values) if not worst.at_least <= value <= worst.at_most]
        values = [worst.values[at] for at in outside]
        witness = {"criterion": worst.name, "seeds outside the range": outside, "their values": values}
    cases = sum(max(each.total, len(each.values)) for each in criteria)
    return Evidence(verdict, cases, tuple(domains), criteria=tuple(criteria), witness=witness, **more)


def statement_verdicts(criteria: Sequence[Criterion]) -> dict[str, Verdict]:
    """Return the verdict on each statement: undecided where one of its premises is not met, else that of the worst.

    Criteria without a statement are one more, the name of which is empty.
    """
    verdicts: dict[str, Verdict] = {}
    for key in dict.fromkeys(each.statement for each in criteria):
        own = [each for each in criteria if each.statement == key or (each.premise and not each.statement)]
        unmet = any(each.premise and not each.met for each in own)
        verdicts[key] = "undecided" if unmet else worst_of(each.verdict for each in own)
    return verdicts


def combine(parts: Mapping[str, Evidence]) -> Evidence:
    """Return one evidence for several subjects, with the worst of their verdicts."""
    by_verdict = {part.verdict: name for name, part in reversed(list(parts.items()))}  # the first of each verdict
    verdict = worst_of(by_verdict)
    first = by_verdict[verdict]
    witness = parts[first].witness
    return Evidence(
        verdict,
        cases=sum(part.cases for part in parts.values()),
        witness=None if witness is None else {"subject": first, **witness},
        seconds=sum(part.seconds for part in parts.values()),
        parts=dict(parts),
    )
