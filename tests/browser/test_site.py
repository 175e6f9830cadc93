"""The site of the project from a disk: every page in four windows, every link, networks in the pages of claims."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from atlas_rows import AUTOMATA, DEPTH, of_every_kind
from vitrify.report.figures import Drawings
from vitrify.report.live import LiveNets
from vitrify.report.site import Site

Visit = Callable[..., Any]
ROOT = Path(__file__).parents[2]
WINDOWS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
NAMES = ("door.ltl", "faces.scene.toml", "towns.connectivity", "zigzag.maxout.json")
PAGE = "<!DOCTYPE html><html><head><title>{0}</title></head><body><h1>{0}</h1><p>Words about it.</p></body></html>"


def written(out: Path, folder: Path, names: tuple[str, ...]) -> Path:
    """A site around a small atlas, with two networks in pages of claims, and docs of three pages."""
    rows, nets = [row for row in of_every_kind() if row.origin != "waiting"], LiveNets(folder / "store" / "nets")
    for row in rows:
        if row.name in (AUTOMATA, DEPTH) and row.outcome:
            nets.make(row.headline, row.outcome)
    Site(folder / "atlas", rows, Drawings(folder / "store"), nets).write()
    (folder / "docs" / "_images").mkdir(parents=True)
    (folder / "docs" / "_images" / "overview.png").write_bytes(b"")
    for name in ("index", "gallery", "search"):
        (folder / "docs" / f"{name}.html").write_text(PAGE.format(name), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("site_of_the_project", ROOT / "tools" / "site.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.main(out, folder / "atlas", folder / "docs", "", names)
    return out


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("out") / "site", tmp_path_factory.mktemp("parts"), NAMES)


class Links(HTMLParser):
    """The addresses that a page points to, and what previews of links show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.facts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.found |= {value for key in ("href", "src") if (value := values.get(key))}
        if tag == "meta" and (values.get("property") or "").startswith("og:"):
            self.facts[str(values["property"])] = str(values["content"])


def test_every_link_leads_to_a_page_and_every_page_has_a_preview(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        links = Links(page.read_text(encoding="utf-8"))
        assert set(links.facts) == {"og:title", "og:description", "og:type", "og:image"}, page
        assert links.facts["og:title"].strip()
        for link in {*links.found, links.facts["og:image"]}:
            parts = urlsplit(link)
            assert not parts.scheme or parts.scheme in ("https", "data"), (page, link)
            if not parts.scheme and parts.path:
                assert (page.parent / unquote(parts.path)).exists(), (page, link)


def test_the_site_is_small(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 60e6
    front = ["index.html", *(f"static/{name}" for name in ("site.css", "parts.css", "live.css", "live.js", "theme.js"))]
    assert sum((site / name).stat().st_size for name in front) < 300e3


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_pages_fit_their_window_and_networks_run_in_them(visit: Visit, site: Path, width: int, scheme: str) -> None:
    live = ["index.html", f"atlas/claims/{AUTOMATA}.html", *(f"playground/{name}.html" for name in NAMES)]
    for name in ("atlas/index.html", "atlas/maps.html", "docs/index.html", *live):
        page = visit((site / name).as_uri(), viewport={"width": width, "height": 844}, color_scheme=scheme)
        if name in live:
            page.wait_for_selector("#stage[data-ms]")
            assert page.locator("#verdict").inner_text() == "as built"
            for stop in page.locator("#stops button").all()[:6]:
                stop.click()
                page.wait_for_timeout(50)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.locator("nav[aria-label='Parts of the site'] a").count() >= 5


def test_the_front_page_is_painted_within_a_second(visit: Visit, site: Path) -> None:
    for _ in range(3):  # the machine may be busy with other things
        page = visit((site / "index.html").as_uri())
        page.wait_for_selector("#stage[data-ms]")
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        if painted < 1000:
            break
    assert painted < 1000


def test_a_page_without_scripts_still_says_what_it_is(visit: Visit, site: Path) -> None:
    page = visit((site / "index.html").as_uri(), java_script_enabled=False)
    assert "regular expression" in page.locator("main").inner_text()
    page = visit((site / "atlas" / "claims" / f"{AUTOMATA}.html").as_uri(), java_script_enabled=False)
    assert "takes JavaScript" in page.locator("main").inner_text()
