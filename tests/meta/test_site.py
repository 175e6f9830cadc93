"""The site of the docs: every formula can be drawn, docstrings keep their meaning, a strict build has no dead link."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

from vitrify.claims.catalogue import listing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """A module of docs/_site."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    return importlib.import_module(request.param)


@pytest.mark.long
@pytest.mark.parametrize("part", ["mathematics"], indirect=True)
def test_every_formula_of_the_claims_and_the_docs_can_be_drawn(part: ModuleType) -> None:
    pages = [re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL) for page in PAGES]
    texts = [headline.doc for headline in listing()] + pages
    formulas = {formula for text in texts for formula in re.findall(r"\$([^$]+)\$", text)}
    assert len(formulas) > 300
    for formula in formulas:
        assert part.mathml(formula).startswith("<math"), formula
    with pytest.raises(ValueError, match=r"\\nonsense"):
        part.mathml(r"a + \nonsense b")
    assert "border-top" in part.mathml(r"\bar p + \overline{pp^\top}")


PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "modules"]
DOCSTRING = r"""A sum $a_{ij}$ of `x_` and *all* of y_, |Q| in one.

$$s = \sum_i
    a_i$$

- one `item`
  on two lines
- another

| sign | of |
| --- | --- |
| $\|v\|$ in all | length |

    a   drawing

>>> 1 + 1
2
"""
CONVERTED = r"""A sum \ :math:`a_{ij}`\  of \ ``x_``\  and \ *all*\  of y\_, \|Q\| in one.

.. math::

    s = \sum_i a_i

- one \ ``item``\  on two lines
- another

.. list-table::
    :header-rows: 1

    * - sign
      - of
    * - \ :math:`|v|`\  in all
      - length

::

    a   drawing

>>> 1 + 1
2"""


@pytest.mark.parametrize("part", ["docstrings"], indirect=True)
def test_docstrings_keep_code_formulas_lists_drawings_and_examples(part: ModuleType) -> None:
    assert part.converted(DOCSTRING.splitlines()) == CONVERTED.splitlines()


class Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        self.loaded |= {given[name] for name in ("src", "href") if name in given and tag != "a"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_strict_build_has_no_warning_no_dead_link_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("furo")
    site = tmp_path / "site"
    options = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-d", str(tmp_path / "trees")]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(site)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 40
    dead = [
        f"{path.relative_to(site)}: {link}"
        for path, page in pages.items()
        for link in page.links | page.loaded
        if not reached(path, link, pages)
    ]
    assert not dead, dead
    learned = (site / "claims" / "learn.html").read_text(encoding="utf-8")
    assert learned.count('class="evidence') >= 10
    assert "<math" in learned
    assert len([headline for headline in listing() if headline.name.replace("_", "-") in learned]) >= 15


def reached(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Whether a link leads to a file of the site, and to a place on it if it names one; readers may go elsewhere."""
    found = urlsplit(link)
    if found.scheme or found.netloc:
        return link not in pages[path].loaded
    target = (path.parent / unquote(found.path)).resolve() if found.path else path
    if target in pages:
        return not found.fragment or unquote(found.fragment) in pages[target].anchors
    return target.is_file()
