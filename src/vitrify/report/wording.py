"""Sentences about evidence: the only place where domains, methods, quantities, criteria and proofs become words.

Nothing reads these sentences back: change them at will.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from vitrify.certification.evidence import CaseKind, Criterion, Domain, Evidence, Link, Quantity, Scope
from vitrify.claims.catalogue import Outcome
from vitrify.encoding import JsonMapping

EVERY_PREFIX = (CaseKind.LISTED_WORDS, CaseKind.FIRST_WORDS, CaseKind.RANDOM_WORDS, CaseKind.RANDOM_SENTENCES)
LINKS = {"weights": "weights = ideal network", "spec": "ideal network = spec"}
BOUNDS = {"=": "", "<=": "at most ", ">=": "at least "}
MAX_ENTRIES = 12  # of a list
MAX_LETTERS = 400  # letters of a sentence


def domain(run: Domain) -> str:
    """Return the cases that were run, in words.

    >>> domain(Domain("words", "sampled", 511, 0, 8))
    'all 511 words of length 0 to 8'
    >>> domain(Domain("random words", "sampled", 64, 24, 24, "reals"))
    'every prefix of 64 random words of length 24, in real arithmetic'
    """
    every = run.method.complete or run.covers_lengths
    start = "every prefix of " if run.kind in EVERY_PREFIX else "all " if every else ""
    number = "" if run.count is None else f"{run.count} "
    ends = [str(end) for end in dict.fromkeys([run.shortest, run.longest]) if end is not None]
    if run.shortest is None and run.longest is not None:
        ends = ["0", *ends]
    length = f" of length {' to '.join(ends)}" if ends else ""
    settings = {name: each for name, each in run.settings.items() if name != "description"}
    parts = [f"{start}{number}{run.kind}{length}", *(f"{name}: {value(each)}" for name, each in settings.items())]
    parts += [str(run.settings["description"])] if "description" in run.settings else []
    return ", ".join(parts) + ("" if run.arithmetic == "float64" else ", in real arithmetic")


def domains(evidence: Evidence) -> list[str]:
    """Return the domains of an evidence itself, each in words."""
    return [domain(each) for each in evidence.domains]


def methods(evidence: Evidence) -> str:
    """Return how the verdict was reached, in words."""
    return ", ".join(evidence.methods)


def links(evidence: Evidence) -> list[tuple[str, str]]:
    """Return the name of each link between the stored weights and the spec, and for which words it holds, in words."""
    within = f", each number {error(evidence)} of the spec's" if evidence.allowed_error else ""
    return [(LINKS[link.name], link_text(link) + (within if link.name == "spec" else "")) for link in evidence.links]


def error(evidence: Evidence) -> str:
    """Return the error that answers may have, as part of a sentence; nothing where it is for rounding alone."""
    return f"within {number(evidence.allowed_error)}" if evidence.allowed_error else ""


def link_text(link: Link) -> str:
    """Return for which words a link holds, and how that was established.

    >>> link_text(Link("weights", "to T", 9, "margins", {"heads": 2}))
    'proved for every word up to length 9 (margins: 2 heads)'
    >>> link_text(Link("spec", "every length", None, "product of states", {"pairs of states": 7}))
    'proved for every word of every length (product of states: 7 pairs of states)'
    >>> link_text(Link("spec", "exhaustive", 9))
    'tested on every word, the longest of length 9'
    >>> link_text(Link("spec", "sampled", 2))
    'sampled (every word up to length 2, and samples of longer ones)'
    """
    if link.scope.proved:
        checked = ", ".join(
            f"{count:,} {what.removesuffix('s') if count == 1 else what}" for what, count in link.instances.items()
        )
        proof = f" ({link.lemma}{f': {checked}' if checked else ''})"
        return f"proved for every word {_length(link)}{proof}"
    if link.scope is Scope.EXHAUSTIVE:
        longest = "input" if link.longest is None else f"word, the longest of length {link.longest}"
        return f"tested on every {longest}"
    if link.longest is None:
        return "sampled"
    return f"sampled (every word {_length(link)}, and samples of longer ones)"


SCOPES = {
    Scope.EVERY_LENGTH: "proved for every length",
    Scope.MAX_LENGTH: "proved up to the maximum length",
    Scope.EXHAUSTIVE: "tested on every input",
    Scope.SAMPLED: "sampled",
}


def certified(certificates: Mapping[str, Evidence]) -> list[tuple[str, str]]:
    """Return the name of each link, and for how many of these networks each scope is established, in words."""
    every = [link for each in certificates.values() for link in each.links]
    counts = {name: Counter(link.scope for link in every if link.name == name) for name in LINKS}
    return [
        (LINKS[name], "; ".join(f"{text}: {_nets(scopes[scope])}" for scope, text in SCOPES.items() if scopes[scope]))
        for name, scopes in counts.items()
        if scopes
    ]


def certified_briefly(certificates: Mapping[str, Evidence]) -> str:
    """Return how many of these networks have proofs of both links, in words; nothing where there are none."""
    if not certificates:
        return ""
    proved = sum(bool(each.links) and all(link.scope.proved for link in each.links) for each in certificates.values())
    return f"both links proved: {proved} of {_nets(len(certificates))}"


def _nets(count: int) -> str:
    return f"{count} net" if count == 1 else f"{count} nets"


def _length(link: Link) -> str:
    return "of every length" if link.longest is None else f"up to length {link.longest}"


def quantity(each: Quantity) -> tuple[str, str]:
    """Return what was declared, and what was measured, in words.

    >>> quantity(Quantity("largest error", 1e-15, 1e-9, "<="))
    ('at most 1e-09', '1e-15')
    """
    ends = f" [{value(each.interval[0])}, {value(each.interval[1])}]" if each.interval else ""
    declared = "" if each.relation is None else BOUNDS[each.relation] + value(each.declared)
    return declared, value(each.measured) + ends


def criterion(each: Criterion) -> tuple[str, str]:
    """Return the range with the number of values that must lie in it, and what was measured, in words.

    >>> criterion(Criterion.judged("loss", [0.1, 0.1, 0.3], at_most=0.2, share=2 / 3))
    ('at most 0.2, 2 of 3', '0.1667 [-0.1202, 0.4535], from 0.1 to 0.3; 2 of 3')
    """
    bounds = [f"at least {each.at_least:g}"] if each.at_least > -math.inf else []
    bounds += [f"at most {each.at_most:g}"] if each.at_most < math.inf else []
    ends = f"from {each.lowest:.4g} to {each.highest:.4g}"
    declared = f"{' and '.join(bounds) or 'any'}, {each.needed} of {each.total}"
    return declared, f"{mean(each)}, {ends}; {each.passed} of {each.total}"


def mean(each: Criterion) -> str:
    """Return the mean over seeds and its interval, in words."""
    low, high = each.interval
    return f"{each.mean:.4g} [{low:.4g}, {high:.4g}]"


def statements(outcome: Outcome) -> str:
    """Return the verdicts on the statements of a claim about training; of one recorded before plans, one verdict."""
    by_verdict: dict[str, list[str]] = {}
    for key, verdict in outcome.statements.items():
        by_verdict.setdefault(verdict, []).append(key)
    return "; ".join(f"{verdict}: {', '.join(keys)}" for verdict, keys in by_verdict.items()) or outcome.verdict


def plan(outcome: Outcome) -> str:
    """Return the version of the plan of a recorded run, and whether it is older than the run."""
    older = "committed before the run" if outcome.criterion_older else "criterion older than the run: no"
    return f"plan {outcome.version}, {older}" if outcome.version else f"version 0, {older}"


SCALES = {"same": "scale of the source", "larger": "larger scale than the source", "own": "scale of our own"}


def scale(outcome: Outcome) -> str:
    """Return how the sizes of a run compare with those of the source: same, reduced (in which axes) or own."""
    if not outcome.criterion_older:
        return "quick scale: reduced" if outcome.scale == "quick" else f"{outcome.scale} scale"
    run = outcome.plan_of_run
    lower = [name for name, axis in run.scale.items() if axis.label == "reduced"]
    return f"scale reduced ({', '.join(lower)})" if run.label == "reduced" else SCALES[run.label]


def spans(numbers: Sequence[int]) -> str:
    """Return whole numbers as spans.

    >>> spans([0, 1, 2, 40])
    '0 to 2, 40'
    """
    starts = [at for at, number in enumerate(numbers) if not at or number != numbers[at - 1] + 1]
    ends = [*(at - 1 for at in starts[1:]), len(numbers) - 1]
    pairs = ((numbers[start], numbers[end]) for start, end in zip(starts, ends, strict=True))
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in pairs)


def proof(data: JsonMapping | None) -> list[str]:
    """Return what a proof comes to for all words at once, and in which formats, a sentence each."""
    if data is None:
        return []
    return [_margins(data), *([_arithmetic(data["arithmetic"])] if "arithmetic" in data else [])]


def _margins(data: JsonMapping) -> str:
    if not data["holds"]:
        return f"margins not proved: {data['reason']}"
    condition = f", given that {' and '.join(data['assumed'])}" if data["assumed"] else ""
    margin = "" if data["margin"] is None else f", with a margin of at least {data['margin']:.3g} after that error"
    return (
        f"margins proved for every word of length 1 to {data['max_length']}{condition}: in each head the best keys "
        f"win, and the logits are within {data['error']:.3g} of those of exact selection{margin}"
    )


def _arithmetic(data: JsonMapping) -> str:
    what = "no format is" if data["smallest"] is None else f"{data['smallest']} is the smallest format that is"
    return f"{what} proved to keep the answer to every word up to length {data['max_length']}"


def remarks(evidence: Evidence) -> list[str]:
    """Return the sentences about the proof, and the notes of the claim."""
    return [*proof(evidence.proof), *evidence.notes]


def lines(evidence: Evidence) -> list[tuple[str, str]]:
    """Return the quantities and criteria of an evidence itself: each name, with what was measured and declared."""
    pairs = [(each.name, *quantity(each)) for each in evidence.quantities]
    pairs += [(each.name, *criterion(each)) for each in evidence.criteria]
    return [
        (name, f"{measured} (declared: {declared})" if declared else measured) for name, declared, measured in pairs
    ]


def number(x: float) -> str:
    """A number, with its thousands apart.

    >>> number(31459), number(1.5265566588595902e-15), number(0.25)
    ('31,459', '1.527e-15', '0.25')
    """
    return f"{x:,}" if isinstance(x, int) else f"{x:,.4g}" if abs(x) < 1e6 else f"{x:.4g}"


def duration(seconds: float) -> str:
    """A time.

    >>> duration(0.034), duration(17.82), duration(376)
    ('0.03 s', '18 s', '6 min 16 s')
    """
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def value(data: object) -> str:
    """Anything that evidence can hold, in a few words.

    >>> value([153, 6]), value(True), value({"word": ["a", "b"], "expected": 1})
    ('153, 6', 'yes', 'word a, b; expected 1')
    """
    if data is None:
        return "–"
    if isinstance(data, bool):
        return "yes" if data else "no"
    if isinstance(data, int | float):
        return number(data)
    if isinstance(data, Mapping):
        return _cut("; ".join(f"{key} {value(each)}" for key, each in data.items()))
    if isinstance(data, list | tuple):
        more = f", … ({len(data)} in all)" if len(data) > MAX_ENTRIES else ""
        return _cut(", ".join(value(each) for each in data[:MAX_ENTRIES]) + more)
    return _cut(str(data))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…"
