"""Identities of sandboxes, families and recipes: run identifiers and recorded evidence hang on every byte of them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from vitrify.learn.models import catalogue as models
from vitrify.learn.recipe import Recipe
from vitrify.report.recorded import described
from vitrify.sandboxes import catalogue as sandboxes

DIGESTS = {  # of values as they were when the first results were recorded, under the parameter names of version 0.2
    "sandbox markov default": "db4dd89735e32750",
    "sandbox regular default": "b715d21a503ad509",
    "sandbox ngram default": "fd75666e43e7a072",
    "sandbox hierarchy default": "d28b17ea8403ae9f",
    "sandbox medley default": "47c68a893431853c",
    "sandbox match small": "3462cb1ad70ba48a",
    "sandbox knowledge default": "664079b98c42486d",
    "sandbox composition small": "fbab929258fbb08f",
    "sandbox copying small": "57b6f65de1e57e40",
    "sandbox dyck small": "027f22a7179c3b1b",
    "sandbox k_hop small": "52b48efcb050a0ee",
    "sandbox recall small": "1bf629d8c0a9a014",
    "sandbox sparse_averaging small": "c8c02c60eb926f68",
    "sandbox induction small": "3aa019574cd0b5c6",
    "family transformer default": "dcf8e4f6208a3d27",
    "family experts small": "0d02e9f5236d0a13",
    "family disentangled default": "f9bbe6f811c115c8",
    "recipe": "58592cc087949fe4",
}


def value_of(case: str) -> Any:
    if case == "recipe":
        return Recipe()
    part, name, size = case.split()
    if part == "sandbox":
        return sandboxes.make(name, sandboxes.entry(name).small if size == "small" else {})
    return models.make(name, models.kind_of(name).SMALL if size == "small" else {})


@pytest.mark.parametrize("case", DIGESTS)
def test_identities_and_settings_stay_what_they_were(case: str) -> None:
    value = value_of(case)
    text = json.dumps([value.identity(), described(value)])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGESTS[case]


def test_text_and_values_have_one_identity() -> None:
    assert sandboxes.make("markov", {"p": "1"}).identity() == sandboxes.make("markov", p=1).identity()
    assert repr(sandboxes.make("markov", p=1).identity()["p"]) == "1.0"
