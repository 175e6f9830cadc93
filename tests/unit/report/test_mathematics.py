"""Sentences of claims as HTML."""

from __future__ import annotations

import re

import pytest

from vitrify.claims.catalogue import listing
from vitrify.report.mathematics import markup, mathml


@pytest.mark.long
def test_every_formula_of_every_claim_becomes_mathml() -> None:
    formulas = {found for headline in listing() for found in re.findall(r"\$([^$]+)\$", headline.doc)}
    assert len(formulas) > 200
    assert [formula for formula in sorted(formulas) if not mathml(formula).startswith("<math")] == []


def test_what_a_formula_says_is_in_its_mathml() -> None:
    found = mathml(r"\lceil\log_2 T\rceil \le 2^n")
    assert re.sub(r"<[^>]*>", "", found).replace("&#x02308;", "⌈").replace("&#x02309;", "⌉") == "⌈log2T⌉&#x02264;2n"
    assert "<msup><mn>2</mn><mi>n</mi></msup>" in found
    assert "<mspace" in found  # between a function and what it is of


@pytest.mark.parametrize("formula", [r"\notacommand{x}", r"\frac{1", "}{"])
def test_a_formula_that_cannot_be_converted_is_shown_as_written(formula: str) -> None:
    assert mathml(formula) == f"<code>{formula}</code>"


def test_markup_of_others_stays_text() -> None:
    found = str(markup('if <b>x</b> & "y", `<i>`, *<u>*, $a < b$'))
    assert "<b>" not in found
    assert "<i>" not in found
    assert "<u>" not in found
    assert "if &lt;b&gt;x&lt;/b&gt; &amp; &quot;y&quot;" in found
    assert "<em>&lt;u&gt;</em>" in found


def test_papers_claims_and_tags_are_links_and_words() -> None:
    found = str(markup("arXiv 2404.04393 [S], see `two_words` and `three`", {"two_words"}, "../"))
    assert '<a href="https://arxiv.org/abs/2404.04393">arXiv 2404.04393</a>' in found
    assert '<abbr title="the source is known from a secondary account">[S]</abbr>' in found
    assert '<a href="../claims/two_words.html">Two words</a>' in found
    assert "<code>three</code>" in found


def test_a_star_in_a_formula_or_a_word_is_no_emphasis() -> None:
    assert "<em>" not in str(markup("P* rows, and 2 * 3 * 4, and a*b*c, and $a^*b^*$"))
