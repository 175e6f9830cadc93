r"""The published map of what transformers can and cannot recognize follows from claims of this catalogue.

Statement: For variants of transformers (attention, ties, mask, positions, precision, depth, steps, padding, norm, kind
of decision) and problems, "yes" follows from nets of a smaller variant, "no" from a class that contains a larger one.
So hard attention with ties to one side recognizes neither PARITY nor MAJORITY nor Dyck-1 (unconditional), and softmax
of constant depth in $O(\log n)$ bits not the word problem of $S_5$ unless TC⁰ = NC¹ (conditional). Star-free languages
run on hard attention and on softmax in $O(\log n)$ bits, PARITY on softmax, with logits that differ by less and less,
$S_5$ in $O(\log n)$ layers. What one net does at all lengths and what a net for each length does are two maps.
Why: A model inside a class and a problem outside of it make a "no"; a construction makes a "yes"; reductions and
inclusions pass both on.
Checked: At no variant that a fact names, and for no problem or class, do the facts and eight rules give both a "yes"
and a "no". They give every row of the survey's table and of later results; the rows are written down a second time,
apart from the facts. Every claim and construction that a fact or a row names exists under that name. For 19 facts, nets
for 6 and 12 letters are built: their attention, ties, masks, positions, depth and norm, and whether one set of arrays
serves both lengths, lie within the variant and scope of the fact, and the nets are right on all words to length 4 and
on random ones.
Not checked: The theorems themselves: most facts are cited, and the claims that execute them check instances, often a
fragment; the table says which. Precision, chains of thought and margins are not read off nets. Positions of a net for
one length count as bounded: their table is finite, and can be scaled into [0, 1].
Source: Strobl, Merrill, Weiss, Chiang & Angluin 2024, arXiv 2311.00208 [S]; the derivation here is our own.
Saboteur: A fact is moved to the nearest wrong variant: hard attention that averages ties is put inside AC⁰, PARITY is
decided by logits that differ by a constant, positions are given to a theorem without them; one claim is renamed; the
variant of a net is made smaller by one step.
"""

from __future__ import annotations

from dataclasses import replace

from vitrify.bounds.survey.about_models import AS_CIRCUIT, STAR_FREE, TWO_LAYERS
from vitrify.bounds.survey.about_problems import PROBLEMS
from vitrify.bounds.survey.closure import MapCell, SurveyFacts, contradictions, derived, published_map, sentence
from vitrify.bounds.survey.exhibits import EXHIBITS, LENGTHS, Exhibit
from vitrify.bounds.survey.later import ROWS
from vitrify.bounds.survey.measured import measured
from vitrify.bounds.survey.models import MODELS, SCOPES, covers
from vitrify.bounds.survey.rows import follows
from vitrify.bounds.survey.statements import Built, Executed, Inside
from vitrify.certification.checking import net_check
from vitrify.certification.evidence import Domain, Evidence, Method, combine, quantities
from vitrify.claims._figures import grid, show
from vitrify.claims.catalogue import Claim, Subject, Subjects, listing
from vitrify.constructions.catalogue import constructions

# SurveyFacts of the map, and the change to the variant of each that is the nearest wrong one.
MOVED = {
    "hard attention in AC⁰": (AS_CIRCUIT, Inside, {"ties": "averaged"}),
    "parity by a sign": (TWO_LAYERS, Built, {"decision": "margin"}),
    "logic without positions": (STAR_FREE, Built, {"positions": "residues"}),
}
MAX_LENGTH, WORK = 4, 1e6  # of words that all are run; multiplications for longer ones


def subjects() -> Subjects:
    for name in MOVED:
        yield Subject(name, data={"facts": SurveyFacts()})
    yield Subject("names", data={"executed": executed()})
    for exhibit in EXHIBITS:
        yield Subject(exhibit.name, data={"exhibit": exhibit, "fact": exhibit.fact})


def executed() -> tuple[Executed, ...]:
    """Return the claims and constructions that facts and rows name, each once."""
    named = [fact.by for fact in SurveyFacts().about_models] + [by for row in ROWS for by in row.by]
    return tuple(dict.fromkeys(by for by in named if by is not None))


def check(subject: Subject) -> Evidence:
    if "facts" in subject.data:
        return _closure(subject.data["facts"])
    return _names(subject.data["executed"]) if "executed" in subject.data else _variant(subject)


def _closure(facts: SurveyFacts) -> Evidence:
    clash = contradictions(facts)
    cells = [derived(facts, model, name, scope) for model in MODELS.values() for name in PROBLEMS for scope in SCOPES]
    lost = [f"{row.number}: {row.statement}" for row in ROWS if not follows(facts, row)]
    measures: dict[str, object] = {"contradictions": len(clash), "rows that do not follow": len(lost)}
    witness: dict[str, object] = {"rows": lost} if lost else {}
    if clash:
        witness |= dict(zip(("yes", "no"), map(sentence, clash[0]), strict=True))
    domains = Domain("cells of the map", Method.DERIVED, len(cells)), Domain("rows", Method.DERIVED, len(ROWS))
    notes = ("asymptotic throughout; one net for all lengths, and a net for each length, are two cells",)
    evidence = Evidence(
        "fails" if witness else "holds", len(cells) + len(ROWS), domains, witness=witness or None, notes=notes
    )
    return evidence.adding(*quantities(dict.fromkeys(measures, 0), measures | _verdicts(cells)))


def _verdicts(cells: list[MapCell]) -> dict[str, object]:
    names = {model: name for name, model in MODELS.items()}
    return {f"{names[cell.model]} / {cell.problem} / {cell.scope}": cell.verdict for cell in cells}


def _names(named: tuple[Executed, ...]) -> Evidence:
    """Compare names and ids with those of the catalogues."""
    known = {(page.name, str(page.fields["id"])) for page in listing()} | {(each.name, "") for each in constructions()}
    gone = [by.name for by in named if (by.name, by.claim_id) not in known]
    domain = Domain("claims and constructions", Method.DERIVED, len(named))
    evidence = Evidence("fails" if gone else "holds", len(named), (domain,), witness={"gone": gone} if gone else None)
    return evidence.adding(*quantities({"gone": 0}, {"gone": len(gone)}))


def _variant(subject: Subject) -> Evidence:
    """Compare the variant of nets with that of a fact, and run the smallest net."""
    exhibit: Exhibit = subject.data["exhibit"]
    fact: Built = subject.data["fact"]
    built = [exhibit.net(length) for length in LENGTHS]
    model, scope = measured([net for _, net in built], fact.model)
    spec, net = built[0]
    shortest = net.architecture.min_length
    right = net_check(net.architecture, spec, max_length=None if shortest else MAX_LENGTH, work=WORK).run(net)
    fits = {"within the variant": model.within(fact.model), "serves the scope": covers(scope, fact.scope)}
    domain = Domain("maximum lengths", Method.DERIVED, len(LENGTHS))
    witness = None if all(fits.values()) else {"nets": f"{model}, {scope}", "fact": f"{fact.model}, {fact.scope}"}
    notes = (f"read off: {model}",)
    read = Evidence("fails" if witness else "holds", len(LENGTHS), (domain,), witness=witness, notes=notes)
    return combine({"variant": read.adding(*quantities(dict.fromkeys(fits, True), fits)), "answers": right})


def sabotage(subject: Subject) -> Subject:
    if "facts" in subject.data:
        by, kind, change = MOVED[subject.name]
        facts: SurveyFacts = subject.data["facts"]
        (fact,) = (each for each in facts.about_models if each.by == by and isinstance(each, kind))
        return subject.with_data(facts=facts.replaced(fact, replace(fact, model=replace(fact.model, **change))))
    if "executed" in subject.data:
        first, *others = subject.data["executed"]
        return subject.with_data(executed=(replace(first, name=f"{first.name}_not"), *others))
    return subject.with_data(fact=_smaller(subject.data["exhibit"]))


def _smaller(exhibit: Exhibit) -> Built:
    """Return the fact of an exhibit with the nearest smaller scope, or else variant, that its nets are not of."""
    if exhibit.fact.scope == "each length":
        return replace(exhibit.fact, scope="one net")
    nets = [exhibit.net(length)[1] for length in LENGTHS]
    below = (each for each in exhibit.fact.model.neighbors() if each.within(exhibit.fact.model))
    return replace(exhibit.fact, model=next(each for each in below if not measured(nets, each)[0].within(each)))


def answers(_: Evidence) -> tuple[list[str], list[str], list[list[float]]]:
    """Return models, problems and a shade for each answer about one net for all lengths."""
    shades = {"yes": 1.0, "open": 0.35, "no, if": 0.15, "no": 0.0}
    cells = [cell for cell in published_map() if cell.scope == "one net"]
    names = list(dict.fromkeys(cell.problem for cell in cells))
    models = list(dict.fromkeys(cell.model for cell in cells))
    labels = [next(name for name in MODELS if MODELS[name] == model) for model in models]
    return labels, names, [[shades[cell.verdict] for cell in cells if cell.model == model] for model in models]


FIGURE = show(grid(answers, "filled: yes; paler: open; palest: no, unless classes collapse; empty: no"))
CLAIM = Claim(
    subjects, check, sabotage, id="B9", standing="theorem", uncertified="about published statements", figure=FIGURE
)
