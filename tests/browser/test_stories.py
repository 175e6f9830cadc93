"""Stories in a browser: a slider shows one picture at a time, and steps lead to each other and to claims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas_rows import live
from vitrify.report.figures import Drawings
from vitrify.report.site import Site
from vitrify.report.stories import stories

Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the story of automata, beside the claims that it shows."""
    out: Path = tmp_path_factory.mktemp("stories")
    rows, drawings = [live(name) for name in stories()[0].claims], Drawings(out / "store")
    for row in rows:
        assert row.outcome
        drawings.draw(row.headline, row.outcome)
    Site(out, rows, drawings).write()
    return (out / "stories" / f"{stories()[0].key}.html").as_uri()


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1280])
def test_a_slider_shows_one_layer_after_the_other(visit: Visit, address: str, width: int) -> None:
    page = visit(address, viewport={"width": width, "height": 800})
    step = page.locator("#step-3")
    step.scroll_into_view_if_needed()
    slider, planes = step.get_by_role("slider", name="which picture"), step.locator(".plane")
    page.wait_for_function("document.querySelectorAll('#step-3 .plane:not([hidden])').length == 1")
    assert step.locator("output").inner_text() == "layer 1"
    first = planes.nth(0).locator(".area svg").inner_html()
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert step.locator("output").inner_text() == "layer 2"
    assert (planes.nth(0).is_visible(), planes.nth(1).is_visible()) == (False, True)
    assert planes.nth(1).locator(".area svg").inner_html() != first
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    step.get_by_role("link", name="Next").click()
    assert page.url.endswith("#step-4")
    page.get_by_role("link", name="Solvable automata run in constant depth").first.click()
    page.wait_for_url("**/claims/solvable_automata_run_in_constant_depth.html")
