"""Write the tables of verdicts: by part into the README, of all claims and of all constructions into the docs.

    make readme

They follow from the catalogues and the recorded evidence, and stand between two comments.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from vitrify.claims import position
from vitrify.claims.catalogue import ClaimPage, listing
from vitrify.constructions.catalogue import constructions
from vitrify.errors import InputError, VitrifyError
from vitrify.files import write_text

BEGIN, END = "<!-- verdicts: `make readme` writes this table -->", "<!-- end of verdicts -->"
PARTS = {
    "R": "[what networks can represent](docs/claims/represent.md)",
    "B": "[what they can't](docs/claims/limits.md)",
    "L": "[how they learn](docs/claims/learn.md)",
    "G": "[when they generalise](docs/claims/generalise.md)",
}
VERDICTS = ("holds", "fails", "undecided")


def verdict(claim: ClaimPage, evidence: Path) -> tuple[str, str | None]:
    """Return the verdict of a claim and the scale at which it was recorded, None if the tests check it every time."""
    if not claim.fields.get("learned") and not (evidence / f"{claim.name}.json").exists():
        return "holds", None
    outcome = claim.recorded(evidence)
    return outcome.verdict, outcome.scale


def by_part(evidence: Path) -> str:
    """Return the table of the README: verdicts by part."""
    lines = ["| part | claims | hold | fail | undecided | recorded |", "| --- | --- | --- | --- | --- | --- |"]
    for letter, title in PARTS.items():
        outcomes = [verdict(claim, evidence) for claim in listing() if str(claim.fields["id"]).startswith(letter)]
        counts = Counter(name for name, _ in outcomes)
        recorded = sum(scale is not None for _, scale in outcomes)
        cells = [title, len(outcomes), *(counts[name] for name in VERDICTS), recorded]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def all_claims(evidence: Path) -> str:
    """Return the table of the docs: every claim with its standing and its verdict."""
    lines = ["| id | claim | standing of the source | verdict here |", "| --- | --- | --- | --- |"]
    for claim in sorted(listing(), key=position):
        name, scale = verdict(claim, evidence)
        result = f"{{download}}`{name}, {scale} scale </evidence/{claim.name}.json>`" if scale else name
        link = f"[{claim.title}](#{claim.name})".replace("|", r"\|")
        lines.append(f"| {claim.fields['id']} | {link} | {claim.fields['standing']} | {result} |")
    return "\n".join(lines)


def all_constructions(evidence: Path) -> str:
    """Return the table of the docs: every construction, and for which words the links of its certificates hold."""
    del evidence  # contract tests compare what constructions declare with certificates of their networks
    proved = [entry for entry in constructions() if not {"exhaustive", "sampled"} & set(entry.certified)]
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
