"""Architectures: their arrays counted by hand, unchanged by JSON, and bad JSON refused with the field that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cases import each
from nets import EVERY_HEAD, mixed
from vitrify.errors import FolderError
from vitrify.net.architecture import Output, from_json, to_json
from vitrify.net.experts import Expert
from vitrify.net.transformer import Block, Head, Transformer


def small(**changes: Any) -> Transformer:
    """Two inputs, three outputs, four positions; one block with two heads and five units, one with neither."""
    heads = (Head(), Head(window=3))
    blocks = (Block(heads, d_head=2, d_value=7, units=5, d_out=1), Block(d_head=9, d_value=9, d_out=9))
    output = Output("lm", ("x", "y", "z"))
    return replace(Transformer(("<s>", "a"), output, max_length=3, d_model=6, blocks=blocks), **changes)


def test_shapes_of_an_adding_net() -> None:
    assert small().widths == (6, 6, 6, 6, 6)
    assert small(norm=True).shapes() == {
        "embed.W_E": (2, 6),
        "pos_embed.W_pos": (4, 6),
        "blocks.0.attn.W_Q": (2, 6, 2),
        "blocks.0.attn.b_Q": (2, 2),
        "blocks.0.attn.W_K": (2, 6, 2),
        "blocks.0.attn.b_K": (2, 2),
        "blocks.0.attn.W_V": (2, 6, 7),
        "blocks.0.attn.b_V": (2, 7),
        "blocks.0.attn.W_O": (2, 7, 6),
        "blocks.0.attn.beta": (2,),
        "blocks.0.attn.b_rel": (2, 3),
        "blocks.0.ln1.w": (6,),
        "blocks.0.ln1.b": (6,),
        "blocks.0.mlp.W_in": (6, 5),
        "blocks.0.mlp.b_in": (5,),
        "blocks.0.mlp.W_out": (5, 6),
        "blocks.0.mlp.b_out": (6,),
        "blocks.0.ln2.w": (6,),
        "blocks.0.ln2.b": (6,),
        "ln_final.w": (6,),
        "ln_final.b": (6,),
        "unembed.W_U": (6, 3),
        "unembed.b_U": (3,),
    }


def test_shapes_of_a_concatenating_net() -> None:
    net = small(residual="concatenate", pads=2)
    shapes = net.shapes()
    assert net.widths == (6, 8, 9, 9, 9)
    assert shapes["pos_embed.W_pos"] == (5, 6)
    assert shapes["blocks.0.attn.W_O"] == (2, 7, 1)
    assert shapes["blocks.0.mlp.W_in"] == (8, 5)
    assert shapes["blocks.0.mlp.W_out"] == (5, 1)
    assert shapes["unembed.W_U"] == (9, 3)
    assert not any(".ln" in name for name in shapes)


def test_the_widest_window_sizes_the_table() -> None:
    assert Block(EVERY_HEAD).window == 3
    assert Block((Head(),)).window == Block().window == 0
    assert "blocks.0.attn.b_rel" not in small(blocks=(Block((Head(),), 1, 1),)).shapes()


def test_a_name_is_no_part_of_an_architecture() -> None:
    assert small(name="one") == small(name="two")
    assert hash(small(name="one")) == hash(small(name="two"))
    assert small(eps=0.5) != small()


@pytest.mark.parametrize("net", [small(), mixed(norm=True, eps=1e-5), mixed(residual="concatenate")], ids=repr)
def test_json_round_trip(net: Transformer) -> None:
    again = from_json(json.loads(json.dumps(to_json(net))))
    assert again == net
    assert again.name == net.name
    assert hash(again) == hash(net)
    assert eval(repr(net)) == net


def test_fields_with_a_default_may_be_missing() -> None:
    data = to_json(small())
    del data["norm"], data["output"]["accepting"], data["blocks"][0]["heads"][0]["ties"]
    assert from_json(data) == small()


DAMAGE = [
    (("architecture",), "lstm", "this reader knows architecture 'transformer'.*, not .lstm."),
    (("inputs",), "abc", 'net.inputs must be a list, each entry a text, not "abc"'),
    (("inputs", 1), 7, "net.inputs.1 must be a text, not 7"),
    (("output",), [], r"net.output must be a table with .*, not \[\]"),
    (
        ("output", "kind"),
        "image",
        'one of lm, recognizer, transducer, next, class, values, not "image"',
    ),
    (("output", "scores"), 1, "net.output.scores must be one of softmax, log, linear, not 1"),
    (("output", "symbols"), {}, "net.output.symbols must be a list, each entry a text, not {}"),
    (("output", "error"), 0.5, "net.output.error of a probability must be below 0.5, not 0.5"),
    (("max_length",), "5", 'net.max_length must be a whole number from 0 to 1,099,511,627,776, not "5"'),
    (("d_model",), 5.5, "net.d_model must be a whole number from 0 to 1,099,511,627,776, not 5.5"),
    (("d_model",), True, "net.d_model must be a whole number from 0 to 1,099,511,627,776, not true"),
    (("pads",), None, "net.pads must be a whole number from 0 to 1,099,511,627,776, not null"),
    (("residual",), "multiply", 'net.residual must be one of add, concatenate, not "multiply"'),
    (("eps",), "x", 'net.eps must be a number of at least 0, not "x"'),
    (("name",), 5, "net.name must be a text, not 5"),
    (("colour",), 5, "net.colour is not a parameter; there are: "),
    (("blocks",), 3, "net.blocks must be a list, each entry a table with heads, d_head, .*, not 3"),
    (("blocks", 1), None, "net.blocks.1 must be a table with heads, d_head, .*, not null"),
    (("blocks", 0, "d_out"), "1", 'net.blocks.0.d_out must be a whole number from 0 to 1,099,511,627,776, not "1"'),
    (
        ("blocks", 0, "heads"),
        None,
        "net.blocks.0.heads must be a list, each entry a table with attention, mask, .*, not null",
    ),
    (
        ("blocks", 0, "heads", 1, "window"),
        "2",
        r'net.blocks.0.heads.1.window must be a whole number from 0 to 1,099,511,627,776 or none, not "2"',
    ),
    (
        ("blocks", 0, "heads", 1, "attention"),
        "fuzzy",
        "heads.1.attention must be one of softmax, sparsemax, hard, linear",
    ),
    (("blocks", 0, "heads", 1, "mask"), ["causal"], "heads.1.mask must be one of none, causal, strict, after, not"),
    (("blocks", 0, "heads", 0, "ties"), "middle", 'heads.0.ties must be one of left, right, average, not "middle"'),
    (("blocks", 0, "heads", 0, "colour"), 1, "net.blocks.0.heads.0.colour is not a parameter; there are: "),
]


@each(("path", "value", "message"), DAMAGE, ids=lambda part: str(part))
def test_bad_json_is_refused_with_the_field(path: tuple[str | int, ...], value: object, message: str) -> None:
    data = json.loads(json.dumps(to_json(small())))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(FolderError, match=message):
        from_json(data)


@each("field", ["inputs", "output", "max_length", "d_model"])
def test_a_missing_field_is_named(field: str) -> None:
    data = to_json(small())
    del data[field]
    with pytest.raises(FolderError, match=f"net.{field} is missing"):
        from_json(data)


@each("data", [None, 3, "transformer", [], {}])
def test_other_data_are_refused(data: object) -> None:
    with pytest.raises(FolderError, match="this reader knows architecture 'transformer'"):
        from_json(data)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (((),), "net.groups must be 5 lists"),
        (((), ((0, 1), (1, 2)), (), (), ()), "different dimensions below 6"),
        (((), (), (), (), ((6,),)), "different dimensions below 6"),
    ],
)
def test_groups_that_no_norm_can_be_for(groups: Any, message: str) -> None:
    with pytest.raises(FolderError, match=message):
        small(norm=True, groups=groups)
    with pytest.raises(FolderError, match="that a norm is for"):
        small(groups=((), (), (), (), ()))


def test_only_what_is_normalised_has_a_scale() -> None:
    shapes = small(norm=True, groups=((), ((4, 1), (0,)), (), (), ())).shapes()
    assert {name: shape for name, shape in shapes.items() if "ln" in name} == {
        "blocks.0.ln2.w": (3,),
        "blocks.0.ln2.b": (3,),
    }


@each(
    ("change", "message"),
    [
        ({"heads": (Head(rotary=10.0),), "d_head": 3}, "their width must be even, not 3"),
        ({"experts": (Expert((0, 0), 1, (0,)),)}, "what an expert reads must be different dimensions"),
        ({"experts": (Expert((0,), 1, (-1,)),)}, "what an expert writes must be different dimensions"),
    ],
)
def test_blocks_of_no_network(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FolderError, match=message):
        mixed(blocks=(Block(**change),))
