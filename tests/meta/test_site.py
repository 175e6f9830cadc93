"""The site of the docs: every formula can be drawn, docstrings keep their meaning, a strict build has no dead link."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import quote, unquote, urlsplit

import pytest

from vitrify.claims.catalogue import listing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """A module of docs/_site."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    return importlib.import_module(request.param)


@pytest.mark.long
@pytest.mark.parametrize("part", sorted(path.stem for path in (ROOT / "docs/_site").glob("*.py")), indirect=True)
def test_the_parts_of_the_site_import_what_there_is(part: ModuleType) -> None:
    assert part.__doc__


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


PICTURES = ROOT / "docs" / "pictures"


def test_the_gallery_has_small_pictures_with_captions_and_all_are_drawn_by_a_tool() -> None:
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    figures = re.findall(r"^```\{figure\} (\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    sizes = [(ROOT / "docs" / name).stat().st_size for name, _ in figures]
    assert 8 <= len(figures) <= 12
    assert max(sizes) < 300_000
    assert sum(sizes) < 2_000_000
    assert all(re.search(r"^:alt: .+\n\n\w.{20}", body, re.MULTILINE) for _, body in figures)
    tree = ast.parse((ROOT / "tools" / "gallery.py").read_text(encoding="utf-8"))
    (table,) = [node.value for node in tree.body if isinstance(node, ast.AnnAssign)]
    assert isinstance(table, ast.Dict)
    names = {f"{ast.literal_eval(key)}.png" for key in table.keys if key}
    assert names | {"overview.png"} == {path.name for path in PICTURES.iterdir()}


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
    large = {path.name: path.stat().st_size for path in pages if path.stat().st_size > MAX_PAGE_BYTES}
    assert not large
    cells = (site / "reference" / "modules" / "vitrify.net.cells.html").read_text(encoding="utf-8")
    assert cells.count("<table") == 2  # of its names, and of its docstring
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("the search of the site is not tried: no chromium is installed")
    for query, expected in SEARCHES.items():
        first = searched(program, site, query)[:MAX_RANK]
        assert expected <= set(first), (query, first)


MAX_PAGE_BYTES = 300_000
MAX_RANK = 10  # of a page that a search must find
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SEARCHES = {
    "attention pattern": {"tutorials/regex-to-transformerlens.html", "tutorials/induction-head.html", "gallery.html"},
    "parity": {"claims/represent.html", "claims/generalise.html", "how-to/automata.html"},
    "Dyck": {"how-to/brackets.html", "claims/represent.html", "gallery.html"},
    "scaling law": {"explanation/scaling-laws.html"},
}


def searched(program: str, site: Path, query: str) -> list[str]:
    """Return the pages that the site's search shows for a query, the best first."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    command = [program, *options, f"{(site / 'search.html').as_uri()}?q={quote(query)}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    links = re.findall(r'<li class="kind-\w+"><a href="([^"#?]+)', text)
    return list(dict.fromkeys(links))


def reached(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Whether a link leads to a file of the site, and to a place on it if it names one; readers may go elsewhere."""
    found = urlsplit(link)
    if found.scheme or found.netloc:
        return link not in pages[path].loaded
    target = (path.parent / unquote(found.path)).resolve() if found.path else path
    if target in pages:
        return not found.fragment or unquote(found.fragment) in pages[target].anchors
    return target.is_file()
