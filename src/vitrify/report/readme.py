"""The README's table of claims, written from the catalogue and the evidence that is kept.

`python -m vitrify.report.readme` (or `make readme`) writes it between two comments, and nothing else is touched.
"""

from __future__ import annotations

import sys
from pathlib import Path

from vitrify.claims._kept import kept
from vitrify.claims.catalogue import listing
from vitrify.errors import InputError, VitrifyError
from vitrify.registry import Headline
from vitrify.report.evidence import in_order

BEGIN, END = "<!-- claims: `make readme` writes this table -->", "<!-- end of claims -->"


def verdict(headline: Headline, evidence: Path) -> str:
    """The verdict of a claim: the one that is kept, with its scale and a link to the numbers.

    Claims that train nothing need none to be kept: the tests run them whenever the code changes, and hold them to it.
    """
    if not headline.fields.get("learned") and not (evidence / f"{headline.name}.json").exists():
        return "holds"
    found = kept(headline, evidence)
    return f"[{found['verdict']}, {found['scale']}](docs/evidence/{headline.name}.json)"


def table(evidence: Path) -> str:
    """The table of all claims, as Markdown."""
    lines = ["| row | claim | status | verdict |", "| --- | --- | --- | --- |"]
    for headline in in_order(listing()):
        row, status = headline.fields["row"], headline.fields["status"]
        lines.append(f"| {row} | {headline.name} | {status} | {verdict(headline, evidence)} |")
    return "\n".join(lines)


def written(text: str, evidence: Path) -> str:
    """The text of a README with its table as it should be."""
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not (begin and end) or BEGIN in after or END in before + after:
        raise InputError(f"the README must have the lines {BEGIN} and {END}, once each, around its table of claims")
    return f"{before}{begin}\n{table(evidence)}\n\n{end}{after}"


def main() -> None:
    """Write the table of the README in this folder, or in the one that is given."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    readme = root / "README.md"
    try:
        text = written(readme.read_text(encoding="utf-8"), root / "docs" / "evidence")
    except VitrifyError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
