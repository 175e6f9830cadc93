"""The page that watches learning, in a browser: a slider through checkpoints, and a built network beside the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vitrify as v
from serving import serving
from vitrify.learn.store import RunStore

pytestmark = pytest.mark.jax


def test_the_slider_goes_through_the_checkpoints(visit: Callable[..., Any], tmp_path: Path) -> None:
    model = v.model("transformer", layers=2, heads=1, d_model=8, units=0)
    recipe = v.Recipe(steps=8, batch=4, test_examples=16, checkpoints=4, probes=("induction",))
    chains = v.sandbox("in_context_markov", states=3, length=12)
    v.train(model, chains, recipe=recipe, store=RunStore(tmp_path / "runs"))
    v.save(v.build(v.task("estimate", order=1, symbols=3, length=12)), tmp_path / "built")
    with serving(workers=1, store=tmp_path / "runs", nets=(str(tmp_path / "built"),)) as address:
        page = visit(f"{address}/watch")
        page.wait_for_selector("#right-heads canvas")
        assert page.locator("#left-heads canvas").count() == page.locator("#right-heads canvas").count() == 2
        assert page.inner_text("#left-name").endswith("step 8")
        assert page.locator("#curve").input_value() == "induction"
        end = page.inner_text("#left-answers")
        page.locator("#step").fill("0")
        page.locator("#left-name", has_text="step 0").wait_for()
        assert page.inner_text("#left-answers") != end
        assert page.locator("#chart svg").count() == 1
        page.locator("#kind").select_option("ngram")
        page.locator("#extract button").click()
        page.locator("#known", has_text="context of").wait_for()
        assert "NGramModel" in page.inner_text("#spec")
        page.locator("#step").fill("1")
        page.locator("#left-name", has_text="step 1").wait_for()
        assert page.inner_text("#known") == ""  # nothing is shown of another checkpoint
        page.locator("#words").fill("0 1")
        page.locator("#left-answers tr").nth(3).wait_for(state="detached")
        assert page.locator("#right-answers tr").count() == 3
