"""Write the tables of verdicts: by part into the README, of all claims, constructions and the survey into the docs.

    make readme

They follow from the catalogues and the recorded evidence, and stand between two comments.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from vitrify.bounds.survey.export import markdown
from vitrify.claims import is_learned, position
from vitrify.claims.catalogue import ClaimPage, Outcome, listing
from vitrify.constructions.catalogue import constructions
from vitrify.errors import InputError, VitrifyError
from vitrify.files import write_text
from vitrify.report import wording

BEGIN, END = "<!-- verdicts: `make readme` writes this table -->", "<!-- end of verdicts -->"
PARTS = {
    "R": "[what networks can represent](docs/claims/represent.md)",
    "B": "[what they can't](docs/claims/limits.md)",
    "L": "[how they learn](docs/claims/learn.md)",
    "G": "[when they generalise](docs/claims/generalise.md)",
}
COLUMNS = {"hold": ("holds",), "not reached": ("not reached",), "fail": ("fails", "reversed")}
COLUMNS |= {"undecided": ("undecided",), "not yet run": ("not yet run",)}


def recorded(claim: ClaimPage, evidence: Path) -> Outcome | None:
    """Return the latest recorded outcome of a claim; None where there is none."""
    return claim.recorded(evidence) if (evidence / f"{claim.name}.json").exists() else None


def verdict(claim: ClaimPage, outcome: Outcome | None) -> str:
    """Return the verdict on a claim; one that trains nothing is checked by the tests every time."""
    return outcome.verdict if outcome else "not yet run" if is_learned(claim) else "holds"


def by_part(evidence: Path) -> str:
    """Return the table of the README: verdicts by part."""
    titles = ["part", "claims", *COLUMNS, "plan older than the run"]
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    for letter, title in PARTS.items():
        pages = [page for page in listing() if str(page.fields["id"]).startswith(letter)]
        outcomes = [(page, recorded(page, evidence)) for page in pages]
        counts = Counter(verdict(page, outcome) for page, outcome in outcomes)
        sums = [sum(counts[name] for name in names) for names in COLUMNS.values()]
        trained = [outcome for page, outcome in outcomes if is_learned(page)]
        older = f"{sum(bool(each and each.criterion_older) for each in trained)} of {len(trained)}" if trained else "–"
        lines.append(f"| {' | '.join(map(str, [title, len(pages), *sums, older]))} |")
    return "\n".join(lines)


def all_claims(evidence: Path) -> str:
    """Return the table of the docs: every claim with its standing, its verdicts, plan and scale."""
    lines = [
        "| id | claim | standing of the source | verdict here | plan and scale |",
        "| --- | --- | --- | --- | --- |",
    ]
    for claim in sorted(listing(), key=position):
        outcome = recorded(claim, evidence)
        name, about = verdict(claim, outcome), ""
        if outcome:
            name = f"{{download}}`{wording.statements(outcome)} </evidence/{claim.name}.json>`"
            about = f"{wording.plan(outcome)}; {wording.scale(outcome)}"
        link = f"[{claim.title}](#{claim.name})".replace("|", r"\|")
        lines.append(f"| {claim.fields['id']} | {link} | {claim.fields['standing']} | {name} | {about} |")
    return "\n".join(lines)


FINDINGS = {  # what no source states: claim and statement -> what it would mean
    ("each_level_of_a_random_hierarchy_has_its_price_by_architecture", "sharing"): "Locality and weight sharing pay "
    "at different levels of a hierarchy: sharing only from the fourth level on",
    ("each_level_of_a_random_hierarchy_has_its_price_by_architecture", "locality"): "A local mask alone explains a "
    "part of what separates a transformer from a CNN",
    ("tied_weights_ignore_chains_without_positive_correlation", "border"): "With tied weights, ignoring the input is a "
    "trap for any number of states, exactly where no function of the symbol correlates positively with itself a step "
    "later",
    ("tied_weights_ignore_chains_without_positive_correlation", "share"): "This trap is a phenomenon of few states",
    ("gradient_descent_finds_the_causal_graph", "formula"): "What the first gradient of attention measures is not the "
    "$\\chi^2$ information: the two agree at parents, but a sibling has information and almost no gradient",
    ("tied_transformers_learn_a_markov_chain_only_if_p_plus_q_is_below_1", "mirror"): "Of two bit chains that are "
    "mirror images, only one is learned from the better start: the code of the bit breaks their symmetry",
    (
        "parity_transformers_count_to_the_largest_number_of_ones_they_saw",
        "last answer",
    ): "Transformers trained on parity "
    "are saturating counters: they answer every larger number of ones like the largest that they saw",
    (
        "parity_transformers_count_to_the_largest_number_of_ones_they_saw",
        "recurrences count on",
    ): "LSTMs and Householder recurrences, trained on the same words, count on",
    ("parity_generalizes_to_longer_words_but_not_to_more_ones", "apart"): "For parity the number of ones, not the "
    "length, is what nets do not extrapolate",
}


def findings(evidence: Path) -> str:
    """Return the table of the docs: statements of ours, with their verdicts."""
    lines = ["| finding | claim and statement | verdict |", "| --- | --- | --- |"]
    pages = {page.name: page for page in listing()}
    for (name, key), meaning in FINDINGS.items():
        outcome = recorded(pages[name], evidence)
        known = outcome.statements.get(key) if outcome else None
        about = f", {wording.plan(outcome)}; {wording.scale(outcome)}" if outcome and known else ""
        lines.append(f"| {meaning} | [{pages[name].title}](#{name}): *{key}* | {known or 'not yet run'}{about} |")
    return "\n".join(lines)


def all_constructions(evidence: Path) -> str:
    """Return the table of the docs: every construction, and for which words the links of its certificates hold."""
    del evidence  # contract tests compare what constructions declare with certificates of their networks
    proved = [entry for entry in constructions() if "sampled" not in entry.certified]
    everywhere = [entry for entry in proved if entry.certified[1] == "every length"]
    lines = [
        f"Of {len(constructions())} constructions, {len(proved)} have both links proved for every word up to the "
        f"maximum length $T$; the ideal networks of {len(everywhere)} of them compute the spec at every length.",
        "",
        "| construction | of | weights = ideal network | ideal network = spec |",
        "| --- | --- | --- | --- |",
    ]
    for entry in constructions():
        scopes = [f"proved, {scope}" if scope in ("every length", "to T") else scope for scope in entry.certified]
        lines.append(f"| `{entry.name}` | {entry.spec} | {' | '.join(scopes)} |")
    return "\n".join(lines)


def survey(evidence: Path) -> str:
    """Return the tables of the docs: the survey of what transformers recognize, the map and the facts."""
    del evidence  # the claim B9 checks the derivation
    return markdown()


def written(text: str, evidence: Path, table: Callable[[Path], str]) -> str:
    """Return a page with its table as it should be."""
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not (begin and end) or BEGIN in after or END in before + after:
        raise InputError(f"the page must have the lines {BEGIN} and {END}, once each, around its table")
    return f"{before}{begin}\n{table(evidence)}\n\n{end}{after}"


PAGES: dict[str, Callable[[Path], str]] = {
    "README.md": by_part,
    "docs/claims/index.md": all_claims,
    "docs/explanation/certified-constructions.md": all_constructions,
    "docs/explanation/findings.md": findings,
    "docs/explanation/what-transformers-recognize.md": survey,
}


def main() -> None:
    """Write the tables of the checkout in this folder, or in the one that is given."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    try:
        for page, table in PAGES.items():
            text = (root / page).read_text(encoding="utf-8")
            write_text(root / page, written(text, root / "docs" / "evidence", table))
    except VitrifyError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
