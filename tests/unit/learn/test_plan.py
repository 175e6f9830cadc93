"""Which members are trained together, and what a word on the command line means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cases import each
from vitrify.errors import InputError, SpecError
from vitrify.learn.experiment import in_words, read_sweep
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import plan
from vitrify.learn.recipe import Recipe
from vitrify.learn.runs import run_id
from vitrify.sandboxes.catalogue import make as make_sandbox

MARKOV = make_sandbox("markov", {"length": 8})
SMALL = make_model("transformer", {"d_model": 8, "layers": 1})


def test_values_that_share_shapes_make_one_group_and_others_split() -> None:
    axes: dict[str, list[float]] = {"p": [0.1, 0.2], "lr": [1e-3, 1e-2, 1e-1], "d_model": [8, 16], "batch": [4, 8]}
    groups = plan(MARKOV, SMALL, Recipe(), axes, 5)
    assert len(groups) == 4
    assert all(len(group.members) == 2 * 3 * 5 for group in groups)
    assert {(group.family.d_model, group.recipe.batch) for group in groups} == {  # type: ignore[attr-defined]
        (8, 4),
        (8, 8),
        (16, 4),
        (16, 8),
    }
    everything = [identity for group in groups for identity in group.identities()]
    assert len({run_id(identity) for identity in everything}) == 4 * 30
    assert all(identity["seed"] == identity["data_seed"] for identity in everything)


def test_parameters_that_go_together_are_one_axis(tmp_path: Path) -> None:
    points = [(0.5, 0.8, 1e-2), (0.2, 0.3, 1e-3)]
    (group,) = plan(MARKOV, SMALL, Recipe(), {"p,q,lr": points, "data_seed": [7, 8]}, 2)
    told = [tuple(member[name] for name in ("p", "q", "lr", "data_seed", "seed")) for member in group.members]
    assert told == [(*point, data, seed) for point in points for data in (7, 8) for seed in (0, 1)]
    for wrong in ([0.5], 0.5):
        with pytest.raises(InputError, match="'p,q' has a part for each of 2 parameters"):
            plan(MARKOV, SMALL, Recipe(), {"p,q": [wrong]})
    file = tmp_path / "sweep.toml"
    file.write_text('sandbox = "markov"\nmodel = "transformer"\n[axes]\n"p,q" = [[0.5, 0.8], [0.2, 0.3]]\n')
    (swept,) = read_sweep(file)
    assert [(m["p"], m["q"]) for group in swept.groups() for m in group.members] == [(0.5, 0.8), (0.2, 0.3)]
    assert (swept.sandbox.p, swept.sandbox.q) == (0.5, 0.8)  # type: ignore[attr-defined]


def test_a_run_has_the_same_name_in_any_group() -> None:
    alone = plan(MARKOV, SMALL, Recipe(lr=1e-2), {"seed": [3]})[0].identities()
    among = plan(MARKOV, SMALL, Recipe(), {"lr": [1e-3, 1e-2], "p": [0.2, 0.7]}, 4)[0].identities()
    assert json.loads(json.dumps(alone[0])) in json.loads(json.dumps(among))


@each(
    ("axes", "message"),
    [
        ({"lrr": [1]}, "there is no parameter 'lrr': did you mean lr"),
        ({"lr": []}, "an axis needs at least one value, lr has none"),
        ({"lr": ["fast"]}, "recipe: lr must be a number above 0, not fast"),
        ({"layers": [0, 1]}, "layers must be a whole number of at least 1, not 0"),
        ({"p": [0.0]}, "p must be a number above 0 and at most 1, not 0.0"),
    ],
)
def test_impossible_axes_are_refused(axes: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(MARKOV, SMALL, Recipe(), axes)


def test_words_set_parameters_and_several_values_make_axes() -> None:
    found = in_words("markov", "transformer", ["p=0.1,0.3", "seed=2..4", "d_model=16", "lr=0.01", "length=9"])
    assert found.sandbox.identity()["length"] == 9
    assert found.family.identity()["d_model"] == 16
    assert found.recipe.lr == 0.01
    (group,) = found.groups()
    assert [(m["p"], m["seed"]) for m in group.members] == [(p, seed) for p in (0.1, 0.3) for seed in (2, 3, 4)]


@each(
    ("words", "message"),
    [
        (["p"], "a parameter is given as key=value, not 'p'"),
        (["p=0.1", "p=0.2"], "p is given twice"),
        (["stepss=3"], "did you mean steps"),
        (["steps=many"], r"steps \(optimizer steps\) must be a whole number of at least 0, not many"),
        (["heads=3"], "d_model 32 must be a multiple of heads 3"),
        (["steps=100000000", "batch=64"], "must be at most 4294967296, the examples"),
    ],
)
def test_wrong_words_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        in_words("markov", "transformer", words).groups()


def test_unknown_sandboxes_and_models_are_told_their_neighbours() -> None:
    with pytest.raises(InputError, match="there is no sandbox 'markow': did you mean markov"):
        in_words("markow", "transformer", [])
    with pytest.raises(InputError, match="there is no model 'transfomer'; there are"):
        in_words("markov", "transfomer", [])


def test_a_file_describes_a_grid_or_a_list(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(
        'sandbox = "markov"\nmodel = "transformer"\nmembers = 2\n[set]\nlength = 8\nd_model = 8\n'
        "[axes]\np = [0.1, 0.2]\n[[runs]]\ntied = true\n[[runs]]\ntied = false\nlr = 0.1\n"
    )
    first, second = read_sweep(file)
    assert [len(group.members) for group in (*first.groups(), *second.groups())] == [4, 4]
    assert (first.family.identity()["tied"], second.family.identity()["tied"], second.recipe.lr) == (True, False, 0.1)
    file.write_text('sandbox = "markov"\nmodle = "transformer"\n[axes]\np = 0.1\n')
    with pytest.raises(SpecError) as caught:
        read_sweep(file)
    assert [problem.line for problem in caught.value.problems] == [None, 2, 4]
    for message in ("model is missing: a text", "sweep.toml:2: modle is not a parameter; there are: sandbox, model"):
        assert message in str(caught.value)
    assert "sweep.toml:4: axes.p must be a list" in str(caught.value)
    file.write_text("sandbox = ")
    with pytest.raises(SpecError, match=r"sweep\.toml:1: the file must be TOML"):
        read_sweep(file)


def test_an_axis_may_set_seeds_with_other_parameters() -> None:
    (group,) = plan(MARKOV, SMALL, Recipe(), {"p,seed": [(0.1, 7), (0.2, 5)], "q": [0.3, 0.4]}, 9)
    seen = [tuple(member[name] for name in ("p", "q", "seed", "data_seed")) for member in group.members]
    assert seen == [(0.1, 0.3, 7, 7), (0.1, 0.4, 7, 7), (0.2, 0.3, 5, 5), (0.2, 0.4, 5, 5)]
