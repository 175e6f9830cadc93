"""The glass box in a browser: give a spec, build, type, step through the layers, break a weight, see red."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import serving

pytest.importorskip("fastapi")

from vitrify.spec.kinds import suffix_of, suffixes
from vitrify.web.examples import examples

Visit = Callable[..., Any]
WAIT = 60_000  # milliseconds
ROOF = {"layers.0.weights": np.array([[[1.0], [-1.0]]]), "layers.0.biases": np.zeros((1, 2))}


@pytest.fixture(scope="module")
def app() -> Iterator[str]:
    with serving(workers=1, tracers=1) as address:
        yield address


def opened(visit: Visit, app: str, example: str, **settings: Any) -> Any:
    """The page, as soon as an example has been built and run."""
    page = visit(f"{app}/glass?example={example}", **settings)
    page.set_default_timeout(WAIT)
    page.wait_for_selector("#stage[data-ms]")
    return page


def give(page: Any, path: Path) -> None:
    """Upload a spec, build it, and wait for its first run."""
    page.set_input_files("#file", str(path))
    page.wait_for_selector(f"#spec-text[data-name='{path.name}']")
    page.evaluate("delete document.getElementById('stage').dataset.ms")
    page.click("#build")
    page.wait_for_selector("#stage[data-ms]")


def walk(page: Any, fired: list[str] | None = None) -> list[str]:
    """Step through all layers by the keyboard, from the first; their names. Units that fired are added to a list."""
    names: list[str] = page.locator("#stops button").all_inner_texts()
    page.locator("#stops button").first.click()
    page.wait_for_selector("#back[disabled]")
    page.locator("#stage-title").click()
    for name in names:
        page.wait_for_selector(f"#stage[data-stop='{name}']")
        assert page.locator("#stage-title").inner_text().lower() == name.lower()
        assert page.locator("#stage").inner_text().count("\n") > 1
        if fired is not None:
            fired += page.locator(".units tbody tr").all_inner_texts()
        page.keyboard.press("ArrowRight")
    return names


def break_and_mend(page: Any) -> None:
    """Break one weight after the other until the check fails, then mend the net."""
    for _ in range(6):
        before = page.locator("#changes li").count()
        page.click("#break-random")
        page.wait_for_selector(f"#changes li:nth-child({before + 1})")
        page.wait_for_selector("#check-card:not([data-verdict=pending])")
        if page.locator("#check-card").get_attribute("data-verdict") == "fails":
            break
    badge = page.locator("#verdict")
    assert badge.inner_text() == "fails"
    red = page.evaluate("getComputedStyle(document.getElementById('verdict')).color").removeprefix("rgb(").split(",")
    assert int(red[0]) > 2 * int(red[1])
    assert page.locator("#evidence .witness").inner_text()
    page.click("#mend")
    page.wait_for_selector("#changes:empty", state="attached")
    page.wait_for_selector("#check-card[data-verdict=holds]")


def test_a_grammar_is_typed_to_walked_through_broken_and_mended(visit: Visit, app: str) -> None:
    page = opened(visit, app, "ambiguous.cfg")
    page.wait_for_selector("#check-card[data-verdict=holds]")
    page.click("#clear")
    page.wait_for_selector("#stage[data-words='0']")
    page.click("#token")
    page.keyboard.type("bo")
    page.keyboard.press("ArrowDown")  # the first of what is offered
    page.keyboard.press("Enter")
    page.wait_for_selector("#chips .chip:has-text('bob')")
    page.keyboard.type("sees ")
    page.wait_for_selector("#stage[data-words='2']")
    assert page.locator("#answer-table tbody tr:last-child td").all_inner_texts() == ["✓", "✓", "✓"]
    assert "After bob sees" in page.locator("#detail").inner_text()
    page.keyboard.press("Backspace")
    page.wait_for_selector("#stage[data-words='1']")
    fired: list[str] = []
    names = walk(page, fired)
    assert any("sees" in row or "bob" in row for row in fired)
    assert names[0] == "embedding"
    assert names[-1] == "answer"
    assert any(name.startswith("attention") for name in names)
    assert any(name.startswith("MLP") for name in names)
    page.keyboard.press("ArrowUp")
    page.wait_for_selector("#answer-table thead th.here:has-text('<s>')")
    break_and_mend(page)
    for name in ("weather.pfsa.json", "capitals.pairs", "roof.maxout.json"):
        give(page, examples()[name])
        page.wait_for_selector("#check-card[data-verdict=holds]")
        assert page.locator("#detail .badge").inner_text() == "right"


def test_a_regex_and_a_text_of_ones_own_are_built_and_given_as_python(visit: Visit, app: str, tmp_path: Path) -> None:
    page = opened(visit, app, "door.ltl", permissions=["clipboard-read", "clipboard-write"])
    for kind, name, text in (("regex", "abba.regex", "(a|b)*abb"), ("n-gram text", "weather.txt", "b a\na a b\n")):
        page.click(f".kind:has-text('{kind}')")
        page.wait_for_selector(f"#spec-text[data-name='{name}']")
        page.wait_for_selector("#build:not([disabled])")
        page.fill("#spec-edit", text)
        assert page.locator("#look.stale").count() == 1  # what is shown is not of this spec
        page.click("#build")
        page.wait_for_selector("#look:not(.stale)")
        page.wait_for_selector("#check-card[data-verdict=holds]")
        assert page.locator("#what").inner_text().startswith(name)
        page.click("#copy")
        code = page.evaluate("navigator.clipboard.readText()")
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip().endswith("holds")


@pytest.mark.slow
def test_attention_stream_and_units_are_drawn_on_a_phone_in_the_dark(visit: Visit, app: str) -> None:
    page = opened(visit, app, "door.ltl", viewport={"width": 390, "height": 844}, color_scheme="dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.click("#clear")
    page.click("#token")
    page.keyboard.type("ring wait open ")
    page.wait_for_selector("#stage[data-words='3']")
    page.click("#stops button:has-text('attention 1')")
    page.wait_for_selector("#stage[data-stop='attention 1']")
    assert page.locator(".head h3").all_inner_texts() == ["select: aggregate"]
    assert "wait (position 2, 1)" in page.locator(".head .look-at").inner_text()
    assert "aggregate" in page.locator(".stream tr.new").inner_text()
    page.click("#stops button:has-text('MLP 1')")
    page.wait_for_selector("#stage[data-stop='MLP 1']")
    assert "units fire" in page.locator("#step").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#by-hand summary")
    page.select_option("#array", "unembed.W_U")
    page.wait_for_selector("#entry option:has-text('→')", state="attached")
    page.select_option("#entry", "0")
    page.fill("#value", "50")
    page.click("#set")
    page.wait_for_selector("#changes li:has-text('unembed.W_U')")
    page.wait_for_selector("#check-card[data-verdict=fails]")
    assert page.locator("#answer-table .sign.wrong").count()


@pytest.mark.slow
def test_a_malformed_file_is_refused_in_words(browser: Any, app: str) -> None:
    page = browser.new_page()  # a refusal is an error in the browser's own console
    page.goto(f"{app}/glass?example=door.ltl")
    page.set_input_files("#file", {"name": "bad.cfg", "mimeType": "text/plain", "buffer": b"S -> 'a\n"})
    page.wait_for_selector("#spec-complaint:has-text('bad.cfg:1')")
    assert page.locator("#build").is_disabled()
    page.close()


@pytest.mark.slow
def test_typing_does_not_wait_for_a_check(visit: Visit, app: str) -> None:
    page = opened(visit, app, "weather.arpa")  # checking it takes seconds
    page.wait_for_selector("#check-card[data-verdict=pending]")
    page.click("#token")
    page.keyboard.type("sun ")
    page.keyboard.type("rain ")
    page.wait_for_selector("#chips .chip:nth-child(4)")
    assert page.locator("#check-card").get_attribute("data-verdict") == "pending"


@pytest.mark.slow
def test_a_keystroke_is_answered_at_once_by_a_net_of_a_million_weights(visit: Visit, app: str, tmp_path: Path) -> None:
    from vitrify.spec.ngrams.model import NGramModel

    rng = np.random.default_rng(0)
    chances = 1 / np.arange(1, 3001) ** 0.9
    drawn = rng.choice(3000, size=(4800, 12), p=chances / chances.sum())
    path = tmp_path / "million.arpa.gz"
    NGramModel.fit([[f"w{word}" for word in sentence] for sentence in drawn], 3).write(path)
    page = opened(visit, app, "door.ltl")
    page.set_input_files("#file", str(path))
    page.wait_for_selector(f"#spec-text[data-name='{path.name}']")
    page.click("#options summary")
    page.fill("#option-max_length", "64")
    page.evaluate("delete document.getElementById('stage').dataset.ms")
    page.click("#build")
    page.wait_for_selector("#stage[data-ms]")
    sizes = page.locator("#sizes").inner_text().replace(",", "")
    assert max(int(part) for part in sizes.split() if part.isdigit()) > 1_000_000
    for _ in range(3):  # the machine may be busy with other things
        times = typed(page, [f"w{word}" for word in drawn[0][:6]])
        if np.median(times) < 150:
            break
    sys.stdout.write(f"{np.median(times):.0f} ms at the median, {max(times):.0f} at most, of {len(times)} keys\n")
    assert np.median(times) < 150, times


def typed(page: Any, words: list[str]) -> list[float]:
    """Milliseconds from a key to the page that shows what it did, at every stop."""
    times = []
    for stop in ("embedding", "attention 0", "MLP 0", "answer"):
        page.click(f"#stops button:has-text('{stop}')")
        page.wait_for_selector(f"#stage[data-stop='{stop}']")
        page.click("#clear")
        page.wait_for_selector("#stage[data-words='0']")
        page.click("#token")
        for place, word in enumerate(words, start=1):
            page.evaluate("delete document.getElementById('stage').dataset.ms")
            page.keyboard.type(f"{word} ")
            page.wait_for_selector(f"#stage[data-words='{place}'][data-ms]")
            times.append(float(page.locator("#stage").get_attribute("data-ms")))
    return times


def upload_of(name: str, folder: Path) -> Path:
    """An example, or one that is packed."""
    if name in examples():
        return examples()[name]
    path = folder / name
    if name.endswith(".arpa.gz"):
        from vitrify.spec.ngrams.model import NGramModel

        NGramModel.read(examples()["weather.arpa"]).write(path)
    else:
        from safetensors.numpy import save_file

        save_file(ROOF, path, metadata={"radius": "2"})
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", [*examples(), "packed.arpa.gz", "packed.maxout.safetensors"])
def test_every_example_is_given_built_walked_through_and_broken(
    visit: Visit, app: str, tmp_path: Path, name: str
) -> None:
    page = opened(visit, app, "door.ltl")
    give(page, upload_of(name, tmp_path))
    page.wait_for_selector("#check-card[data-verdict=holds]")
    page.click("#suggest")
    assert len(walk(page)) == page.locator("#stops button").count()
    break_and_mend(page)


def test_every_kind_of_spec_has_an_example() -> None:
    with_examples = {suffix_of(name) for name in examples()}
    assert set(suffixes()) - with_examples == {".arpa.gz", ".maxout.safetensors", ".cfg.json"}  # forms of others
