"""The atlas in a browser, from a disk: filters, pages of claims, figures that answer; without scripts, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from atlas_rows import AUTOMATA, DEPTH, TABLE, of_every_kind
from vitrify.report.figures import Drawings
from vitrify.report.site import Site

Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a small atlas, with three figures."""
    out = tmp_path_factory.mktemp("atlas")
    rows, drawings = of_every_kind(), Drawings(out / "store" / "figures")
    for row in rows:
        if row.name in (AUTOMATA, DEPTH, TABLE) and row.outcome:
            drawings.draw(row.headline, row.outcome)
    Site(out, [row for row in rows if row.origin != "waiting"], drawings).write()
    return out.as_uri()


def shown(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        ".claim:not([hidden]) .place", "all => all.map(each => each.textContent)"
    )
    return found


def test_filters_choose_claims_and_stay_in_the_address(visit: Visit, atlas: str) -> None:
    page = visit(f"{atlas}/index.html")
    assert shown(page) == ["R14", "R24", "R19", "B5", "B9", "L5", "G4", "G6"]
    page.keyboard.press("/")
    page.keyboard.type("automaton LOG")
    assert page.evaluate("document.activeElement.id") == "filter-text"
    page.wait_for_function("window.CLAIM_WORDS")  # a file of its own, for who looks for a claim
    assert shown(page) == ["R14"]
    assert page.locator("#filter-count").text_content() == "1 of 8"
    assert not page.locator("#limits").is_visible()
    page.reload()
    page.wait_for_function("window.CLAIM_WORDS && document.querySelectorAll('.claim:not([hidden])').length == 1")
    assert shown(page) == ["R14"]
    page.locator("#filter-text").fill("")
    page.select_option("#filter-part", "G")
    assert shown(page) == ["G4", "G6"]
    page.select_option("#filter-part", "")
    page.select_option("#filter-verdict", "fails")
    assert shown(page) == ["R24"]
    page.select_option("#filter-kind", "recorded")
    assert shown(page) == []
    assert page.locator("#filter-none").is_visible()
    page.locator("#filter button").click()
    page.wait_for_function("document.querySelectorAll('.claim:not([hidden])').length == 8")
    assert page.locator(".picture img").evaluate_all("all => all.every(each => each.complete && each.naturalWidth)")


def test_a_figure_answers_the_pointer_and_the_keys(visit: Visit, atlas: str) -> None:
    page = visit(f"{atlas}/index.html")
    page.get_by_text("attention layers, which give its state").click()
    page.wait_for_url(f"**/claims/{AUTOMATA}.html")
    area, readout = page.locator(".plot .area").first, page.locator(".readout")
    area.scroll_into_view_if_needed()
    first = area.locator("circle:not(.ring)").first
    first.hover(force=True)
    assert readout.inner_text().splitlines() == ["any automaton: log-depth", "length T: 4", "layers: 2"]
    entry = page.get_by_role("button", name="any automaton: log-depth")
    count = area.locator("circle:not(.ring)").count()
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert area.locator("circle:not(.ring)").count() == count - 9
    entry.press("Enter")
    assert area.locator("circle:not(.ring)").count() == count
    ticks = area.locator(".tick").all_inner_texts()
    box = area.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 160, box["y"] + 110, steps=3)
    page.mouse.up()
    closer = area.locator(".tick").all_inner_texts()
    assert closer != ticks  # new ticks for what is in view
    page.mouse.dblclick(box["x"] + 100, box["y"] + 40)
    assert area.locator(".tick").all_inner_texts() == ticks
    area.focus()
    page.keyboard.press("ArrowRight")
    said = readout.inner_text()
    page.keyboard.press("ArrowRight")
    assert readout.inner_text() != said
    page.keyboard.press("+")
    assert area.locator(".tick").all_inner_texts() != ticks
    page.keyboard.press("0")
    assert area.locator(".tick").all_inner_texts() == ticks
    page.keyboard.press("Escape")
    assert not readout.is_visible()


def test_a_cell_of_a_heat_map_says_its_value(visit: Visit, atlas: str) -> None:
    page = visit(f"{atlas}/maps.html")
    page.get_by_role("link", name="G4").first.click()
    page.wait_for_url(f"**/claims/{TABLE}.html")
    cell = page.locator(".plot .area svg g rect").first
    cell.scroll_into_view_if_needed()
    box = cell.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    assert page.locator(".readout").inner_text().splitlines()[0].startswith("parity")
    assert page.locator(".readout").inner_text().splitlines()[1].startswith("transformer")


def test_everything_but_interaction_works_without_scripts(visit: Visit, atlas: str) -> None:
    page = visit(f"{atlas}/index.html", java_script_enabled=False, color_scheme="dark")
    assert not page.locator("#filter").is_visible()
    assert page.locator(".claim").count() == 8
    page.locator(f"a.title[href*='{DEPTH}']").click()
    assert page.locator(".plot img").evaluate("each => each.complete && each.naturalWidth > 0")
    assert not page.locator(".only-script").is_visible()
    page.get_by_text("The code of this claim").click()
    assert page.get_by_text("def draw(").is_visible()


def test_a_phone_has_no_page_wider_than_itself_and_colours_can_be_chosen(visit: Visit, atlas: str) -> None:
    page = visit(f"{atlas}/index.html", viewport={"width": 360, "height": 740}, color_scheme="light")
    for address in ("index.html", "maps.html", f"claims/{AUTOMATA}.html", f"claims/{DEPTH}.html"):
        page.goto(f"{atlas}/{address}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, address
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Use dark colours").click()
    dark = page.evaluate(paper)
    page.goto(f"{atlas}/index.html")
    assert page.evaluate(paper) == dark != light
    page.get_by_role("button", name="Use light colours").click()
    assert page.evaluate(paper) == light


# Every page -----------------------------------------------------------------------------------------------------------

SMALL_TEXT = """() => [...document.querySelectorAll(".plot text, .plot p, .plot button, .plot span")].filter((each) => {
  const seen = each.textContent.trim() && each.getBoundingClientRect().width;
  return seen && parseFloat(getComputedStyle(each).fontSize) < 9;
}).map((each) => each.textContent)"""
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (each) => { for (let at = each; at; at = at.parentElement) {
    const color = rgb(getComputedStyle(at).backgroundColor); if (color[3] === 255) return color; }
    return [255, 255, 255]; };
  const found = [];
  for (const each of document.querySelectorAll("body *")) {
    const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !each.checkVisibility({ visibilityProperty: true })) continue;
    if (each.closest(".plot svg g") || each.closest("[hidden], script, noscript")) continue;
    const style = getComputedStyle(each), svg = each instanceof SVGElement;
    const [one, two] = [light(rgb(svg ? style.fill : style.color)), light(behind(each))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)}: ${each.textContent.trim().slice(0, 40)}`);
  }
  return found;
}"""


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (390, "light"), (1280, "dark"), (1280, "light")])
def test_every_page_can_be_read_and_stays_in_its_window(visit: Visit, atlas: str, width: int, scheme: str) -> None:
    page = visit(f"{atlas}/index.html", viewport={"width": width, "height": 800}, color_scheme=scheme)
    folder = Path(url2pathname(urlsplit(atlas).path))
    for path in sorted(folder.rglob("*.html")):
        page.goto(path.as_uri())
        page.wait_for_function("[...document.querySelectorAll('.plot')].every(each => each.matches('.ready'))")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        assert page.evaluate(SMALL_TEXT) == [], path.name
        assert page.evaluate(CONTRAST) == [], path.name
        for address in page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)"):
            target = Path(url2pathname(urlsplit(address).path))
            assert not address.startswith("file:") or target.exists(), (path.name, address)


def test_the_index_is_small_before_anything_is_touched(visit: Visit, atlas: str) -> None:
    page = visit("about:blank")
    loaded: list[int] = []
    page.on("response", lambda answer: loaded.append(len(answer.body())) if answer.url.startswith("file:") else None)
    page.goto(f"{atlas}/index.html")
    page.wait_for_load_state("networkidle")
    assert sum(loaded) < 300_000
    assert not page.evaluate("!!window.CLAIM_WORDS")
