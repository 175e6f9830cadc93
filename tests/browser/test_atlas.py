"""The atlas in a browser, from a disk: filters, pages of claims, figures that answer; without scripts, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    assert shown(page) == ["R14"]
    assert page.locator("#filter-count").text_content() == "1 of 8"
    assert not page.locator("#limits").is_visible()
    page.reload()
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
    plot, readout, svg = page.locator(".plot"), page.locator(".readout"), page.locator(".plot svg")
    plot.scroll_into_view_if_needed()
    whole = svg.get_attribute("viewBox")
    ring = page.locator("#plot-0-0 use").first
    ring.hover(force=True)
    assert readout.inner_text().splitlines() == ["declared", "layers: 7", "y: S5: softmax"]
    entry = page.get_by_role("button", name="series declared")
    entry.click()
    assert not page.locator("#plot-0-0").is_visible()
    assert not page.locator("#plot-1-0").is_visible()
    assert page.locator("#plot-0-1").is_visible()
    assert entry.get_attribute("aria-pressed") == "false"
    page.locator("#plot-0-1 use").first.hover(force=True)
    assert readout.inner_text().startswith("measured")
    entry.press("Enter")
    assert page.locator("#plot-0-0").is_visible()
    box = svg.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 90, steps=3)
    page.mouse.up()
    left, _, width, _ = map(float, svg.get_attribute("viewBox").split())
    assert (left > 0, width < float(whole.split()[2]) / 2) == (True, True)
    page.mouse.dblclick(box["x"] + 100, box["y"] + 40)
    assert list(map(float, svg.get_attribute("viewBox").split())) == list(map(float, whole.split()))
    plot.focus()
    page.keyboard.press("ArrowRight")
    first = readout.inner_text()
    page.keyboard.press("ArrowRight")
    assert readout.inner_text() != first
    page.keyboard.press("+")
    assert float(svg.get_attribute("viewBox").split()[2]) < float(whole.split()[2])
    page.mouse.move(box["x"] + 100, box["y"] + 40)
    page.mouse.wheel(0, 4000)
    page.wait_for_function(
        "w => Math.abs(document.querySelector('.plot svg').viewBox.baseVal.width - w) < 0.1",
        arg=float(whole.split()[2]),
    )
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    assert not readout.is_visible()


def test_a_cell_of_a_heat_map_says_its_value(visit: Visit, atlas: str) -> None:
    page = visit(f"{atlas}/maps.html")
    page.get_by_role("link", name="G4").first.click()
    page.wait_for_url(f"**/claims/{TABLE}.html")
    page.locator("#plot-0-0").scroll_into_view_if_needed()
    box = page.locator("#plot-0-0").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    assert page.locator(".readout").inner_text().splitlines()[0].startswith("parity")
    assert page.locator(".readout").inner_text().splitlines()[1].startswith("transformer")


def test_everything_but_interaction_works_without_scripts(visit: Visit, atlas: str) -> None:
    page = visit(f"{atlas}/index.html", java_script_enabled=False, color_scheme="dark")
    assert not page.locator("#filter").is_visible()
    assert page.locator(".claim").count() == 8
    page.locator(f"a.title[href*='{DEPTH}']").click()
    assert page.locator(".plot svg").is_visible()
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
