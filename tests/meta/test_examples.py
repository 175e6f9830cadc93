"""The scripts in examples/ run from top to bottom, are short, and print what a newcomer should see."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from cases import each

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SEEN = {
    "build_a_grammar": ("after 'the dog': ('sleeps', 'sees')", "dog: ['NP']", "{'dog': 0.7, 'cat': 0.3}", "holds on"),
    "certify_a_net": ("abba is accepted: True", "holds (3,244 cases)", "sampled proved", "to the bit: True"),
    "train_twins": ("built: holds", "step   0: nearest to uniform", "step 300: nearest to optimal"),
    "read_a_claim": ("R24 (theorem)", "holds; the saboteur was rejected: True", "holds (large scale"),
    "break_a_net": ("fails {'word': ['1', '1', '1']", "hook_logits                      differs", "200 of 200"),
    "bring_your_own_data": ("equal when read again: True", "cat | █     | → the", "train-00000-of-00001.parquet"),
    "patching": (),
}
ELSEWHERE = {"train_twins", "patching"}  # below, and in tests/interop where its library is installed


def said(script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(script))
    return capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("script", [s for s in SCRIPTS if s.stem not in ELSEWHERE], ids=lambda script: script.stem)
def test_a_script_prints_what_a_newcomer_should_see(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = said(script, monkeypatch, capsys)
    for words in SEEN[script.stem]:
        assert words in found, found


@pytest.mark.slow
def test_twins_come_near_the_optimum(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(ROOT / "examples" / "train_twins.py", monkeypatch, capsys)
    for words in SEEN["train_twins"]:
        assert words in found, found
    (last,) = [line for line in found.splitlines() if line.startswith("  300  ")]
    assert all(float(excess) < 0.05 for excess in last.split()[1:])


@each("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_is_short_and_has_cells(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert script.stem in SEEN
    assert len(text.splitlines()) <= 60
    assert text.count("\n# %% ") >= 4
