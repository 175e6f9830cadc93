"""Labels: found by name, unchanged by JSON, refused when they are something else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cases import each
from nets import mixed
from vitrify.errors import FolderError
from vitrify.net.labels import (
    HeadLabel,
    Labels,
    SpaceLabel,
    UnitsLabel,
    label_problems,
    labels_from_json,
    labels_of,
    labels_to_json,
)
from vitrify.net.spaces import Bits, Flag, Integers, OneHot, Reals

LABELS = Labels(
    spaces=(
        SpaceLabel("letter", OneHot(("a", "b"), void=True), (0, 1), born=0, dies=3),
        SpaceLabel("state", Bits(("p", "q", "r")), (4, 2), born=1, dies=2, error=0.125),
        SpaceLabel("first", Flag(), (3,), born=0, dies=0),
        SpaceLabel("count", Integers(("n",), 0, 7), (5,), born=2, dies=2),
        SpaceLabel("share", Reals(("x",), 0.0, 1.5), (6,), born=2, dies=2, error=1e-9),
    ),
    heads=(
        HeadLabel("previous", 0, 1, writes="state", gap=2.0, kappa=17.5, beta_min=3.25, tolerance=1e-6),
        HeadLabel("average", 1, 0, writes="share"),
    ),
    units=(
        UnitsLabel("step", 0, 0, 6, writes=("state", "count"), unit_names=("p,a", "q,a")),
        UnitsLabel("snap", 1, 6, 8, ()),
    ),
)


def test_json_round_trip() -> None:
    again = labels_from_json(json.loads(json.dumps(labels_to_json(LABELS))))
    assert again == LABELS
    assert hash(again) == hash(LABELS)
    assert labels_from_json(labels_to_json(Labels())) == Labels()


def test_a_space_is_found_by_its_name() -> None:
    assert LABELS.space("state") is LABELS.spaces[1]
    with pytest.raises(KeyError, match="no space is called 'colour'; there are letter, state, first, count, share"):
        LABELS.space("colour")


@each("data", [None, 3, "labels", [], {}, {"spaces": []}, {"spaces": 3, "heads": [], "units": []}])
def test_other_data_are_refused(data: Any) -> None:
    with pytest.raises(FolderError, match=r"labels\.json is not a set of labels"):
        labels_from_json(data)


@each(
    ("part", "entry"),
    [
        ("spaces", {"name": "x", "dims": [0], "born": 0, "dies": 0}),
        ("spaces", {"name": "x", "kind": {"kind": "flag"}, "dims": 3, "born": 0, "dies": 0}),
        ("spaces", {"name": "x", "kind": "flag", "dims": [0], "born": 0, "dies": 0}),
        ("spaces", {"name": "x", "kind": {"kind": "flag"}, "dims": [0], "born": 0, "dies": 0, "colour": 1}),
        ("heads", {"name": "x"}),
        ("heads", "x"),
        ("units", {"name": "x", "block": 0, "start": 0, "stop": 1, "writes": [], "rows": None}),
        ("units", {"name": "x", "block": 0, "start": 0, "writes": [], "rows": []}),
    ],
)
def test_a_damaged_entry_is_refused(part: str, entry: Any) -> None:
    with pytest.raises(FolderError, match=r"labels\.json"):
        labels_from_json({**labels_to_json(LABELS), part: [entry]})


def test_no_head_has_two_labels() -> None:
    net = mixed()
    head = HeadLabel("one", 0, 0, writes="x")
    assert label_problems(Labels(heads=(head,)), net) == []
    assert label_problems(Labels(heads=(head, replace(head, name="two"))), net) == ["head 0.0 has two labels"]
    far = label_problems(Labels(heads=(replace(head, index=99),)), net)
    assert far == ["head 'one' is not a head of the network: 0.99"]


def test_spaces_share_a_dimension_only_one_after_the_other() -> None:
    net = mixed()
    first, second = SpaceLabel("one", Flag(), (0,), born=0, dies=1), SpaceLabel("two", Flag(), (0,), born=2, dies=2)
    assert label_problems(Labels((first, second)), net) == []
    problems = label_problems(Labels((first, replace(second, born=1))), net)
    assert problems == ["spaces 'one' and 'two' share dimension 0 at moment 1"]
    assert label_problems(Labels((replace(first, dims=(99,)),)), net)
    assert label_problems(Labels((replace(first, kind=Bits(("a",)), dims=(1, 1)),)), net)


def test_labels_of_another_network_are_refused() -> None:
    data = labels_to_json(Labels(heads=(HeadLabel("one", 0, 99, writes="x"),)))
    with pytest.raises(FolderError, match=r"labels\.json does not fit the network: head 'one' is not a head"):
        labels_of(data, mixed())
