"""The tutorial that ends in TransformerLens prints what it says, with the library itself."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # what libraries warn of is their business
PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "regex-to-transformerlens.md"


def test_all_blocks_of_the_tutorial_print_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those marked `{code-block} pycon` need torch and are left out by tests/meta/test_documents.py."""
    for module in ("torch", "transformer_lens"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'vitrify[interop]' runs the tests of exports")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(pycon|\{code-block\} pycon)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert sum(kind != "pycon" for kind, _ in blocks) == 4
    joined = "\n".join(block for _, block in blocks)
    test = doctest.DocTestParser().get_doctest(joined, {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=report.append).failed == 0, "".join(report)
