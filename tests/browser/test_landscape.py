"""The landscape explorer and the live curves in a browser: sliders, a start that is put and moved, curves that grow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import serving
from vitrify.learn.store import RunStore
from vitrify.report.landscape import EDGE, path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return RunStore(tmp_path_factory.mktemp("live") / "runs")


@pytest.fixture(scope="module")
def address(browser: Any, store: RunStore) -> Iterator[str]:
    del browser  # where there is none, nothing is served
    with serving(workers=0, tracers=0, store=store.path) as found:
        yield found


def put(page: Any, e: float, w: float) -> None:
    """Click at a point of the plane."""
    box = page.locator("#plane canvas").bounding_box()
    across, down = (e + EDGE) / (2 * EDGE), (EDGE - w) / (2 * EDGE)
    page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])


def expects(page: Any, place: str) -> Any:
    """What must become true of an element, soon."""
    from playwright.sync_api import expect

    expect.set_options(timeout=10_000)
    return expect(page.locator(place))


def ends(page: Any, kind: str) -> None:
    expects(page, "#kind").to_have_attribute("data-kind", kind)


def test_sliders_and_starts_change_where_the_flow_ends(visit: Any, address: str) -> None:
    page = visit(f"{address}/landscape")
    ends(page, "bad local minimum")
    expects(page, "#plane-caption").to_contain_text("is a bad local minimum")

    page.locator("#p").fill("0.1")  # now p + q < 1
    ends(page, "global minimum")
    expects(page, "#plane-caption").to_contain_text("is a saddle")
    assert page.locator("#p-value").inner_text() == "0.10"
    table = page.locator("#critical-points tr").all_inner_texts()
    assert len(table) == 4
    assert "global minimum" in table[0]

    put(page, 0.4, -1.6)
    ends(page, "bad local minimum")
    said = page.locator("#path-caption").inner_text()
    e, w = (float(page.locator(f"#{name}").input_value()) for name in "ew")
    assert [e, w] == pytest.approx([0.4, -1.6], abs=0.02)
    expected = path("tied", 0.1, 0.8, e, w)
    assert said == expected["caption"]
    told = page.locator("#plane .readout").text_content().replace("−", "-").split()
    assert float(told[-1]) == pytest.approx(expected["loss"][0], abs=0.01)

    page.locator("#plane svg").focus()
    for _ in range(5):
        page.keyboard.press("Shift+ArrowRight")
    ends(page, "global minimum")
    assert float(page.locator("#e").input_value()) == pytest.approx(e + 1.25, abs=0.01)
    page.locator("#p").focus()
    page.keyboard.press("End")
    expects(page, "#p-value").to_have_text("0.98")
    page.get_by_role("button", name="small start").click()
    ends(page, "bad local minimum")

    page.get_by_label("untied", exact=True).check()
    ends(page, "global minimum")
    assert page.locator("#third-row").is_visible()
    expects(page, "#plane-caption").to_contain_text("No region")
    expects(page, "#recorded-caption").to_contain_text("Recorded, not computed now")
    expects(page, "#recorded svg .line").to_have_count(1)
    page.get_by_label("tied, with attention").check()
    ends(page, "bad local minimum")
    assert page.locator("#trouble").is_hidden()


def test_a_start_can_be_dragged_and_colours_follow_the_theme(visit: Any, address: str) -> None:
    page = visit(f"{address}/landscape", viewport={"width": 390, "height": 800}, color_scheme="dark")
    ends(page, "bad local minimum")
    expects(page, "#plane-caption").to_contain_text("is a bad local minimum")
    page.locator("#plane").scroll_into_view_if_needed()
    box = page.locator("#plane canvas").bounding_box()
    canvas = page.locator("#plane canvas")
    pixel = "(canvas) => canvas.getContext('2d').getImageData(10, 10, 1, 1).data.join()"
    dark = canvas.evaluate(pixel)
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.8, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, middle + 0.3 * box["height"], steps=4)
    page.mouse.up()
    ends(page, "global minimum")
    assert float(page.locator("#w").input_value()) == pytest.approx(-1.5, abs=0.05)
    page.locator("#theme").click()
    assert canvas.evaluate(pixel) != dark
    assert page.locator("html").evaluate("(root) => root.scrollWidth") <= 390


def test_curves_of_a_sweep_grow_while_it_is_trained(visit: Any, address: str, store: RunStore) -> None:
    page = visit(f"{address}/curves")
    expects(page, "#message").to_contain_text("no run store")
    chains = [
        {"sandbox": {"name": "markov", "p": p}, "model": {"name": "transformer"}, "seed": seed}
        for p in (0.2, 0.5)
        for seed in range(3)
    ]

    def log(group: Any, step: int) -> None:
        floor = np.repeat([0.5, 0.6], 3)
        losses = floor + np.array([0.1, 0.2, 0.3, 0.2, 0.3, 0.4]) / (1 + step)
        group.log({"step": step, "loss": losses, "floor": floor, "excess": losses - floor})
        group.flush()

    with store.open_many(chains) as opened:
        (group,) = opened.groups
        for step in (0, 1, 2):
            log(group, step)
        page.wait_for_selector("#chart svg")
        expects(page, "#summary").to_contain_text("after 2 steps")
        assert page.locator("#live").inner_text() == "live: 6 under way"
        assert page.locator("#legend li").all_inner_texts() == [
            "p = 0.2 (3 runs, 3 under way)",
            "p = 0.5 (3 runs, 3 under way)",
        ]
        assert page.locator("#chart .band").count() == 2
        names = page.locator("#chart .name").all_text_contents()
        assert names == ["optimal loss (p = 0.2) 0.5", "optimal loss (p = 0.5) 0.6"]
        levels = page.locator("#chart .level").all()
        assert [level.get_attribute("class") for level in levels] == ["level floor s0", "level floor s1"]
        heights = [float(level.get_attribute("y1")) for level in levels]
        assert heights[0] > heights[1] > 0  # the lower loss is further down
        first, *_, last = page.locator("#chart .line.s0").get_attribute("d").removeprefix("M").split("L")
        (left, top), (right, bottom) = ([float(number) for number in point.split(",")] for point in (first, last))
        assert left < right
        assert top < bottom < heights[0]
        log(group, 8)
        expects(page, "#summary").to_contain_text("after 8 steps")
        group.finish_all({row: ({"loss": 0.5}, None) for row in range(6)})
    expects(page, "#live").to_have_text("live: nothing under way")
    page.locator("#quantity").select_option("excess")
    expects(page, "#chart .label >> nth=1").to_have_text("excess (nats per answer)")
    assert page.locator("#log-values").is_checked()
    page.locator("#query").fill("p=0.5")
    expects(page, "#legend li").to_have_count(1)
    page.locator("summary").click()
    assert page.locator("#rows tr").count() == 3


def test_pages_are_made_of_well_formed_html(address: str) -> None:
    import html5lib
    import httpx

    for page in ("landscape", "curves"):
        text = httpx.get(f"{address}/{page}", trust_env=False).text
        html5lib.HTMLParser(strict=True).parse(text)
        assert "style=" not in text  # the app's own rules refuse it
        assert Path(page).name in text
