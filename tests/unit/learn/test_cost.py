"""Lanes: as many members side by side as a device has room for; the work of a step and the limit of a device."""

from __future__ import annotations

import numpy as np
import pytest

from vitrify.errors import InputError
from vitrify.learn.cost import FILLED, STEP_SHARE, Ceilings, Work, ceilings, lane_width, memory, work
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import MemberGroup, plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.trainer import Trainer
from vitrify.sandboxes.catalogue import make as make_sandbox

pytestmark = pytest.mark.jax


def group(members: int) -> MemberGroup:
    sandbox = make_sandbox("markov", {"length": 8, "p": 0.2, "q": 0.3})
    model = make_model("transformer", {"d_model": 8, "layers": 1, "heads": 1, "units": 8})
    return plan(sandbox, model, Recipe(steps=3, batch=4, test_examples=16), {}, members)[0]


def room_for(members: int, of: MemberGroup) -> int:
    """Bytes of a device on which just so many members of a group can step side by side."""
    states = memory(of, 0)
    return int((states + (members + 0.5) * STEP_SHARE * (memory(of, 1) - states)) / FILLED)


def test_lanes_are_as_wide_as_there_is_room_and_of_equal_width() -> None:
    ten = group(10)
    assert [lane_width(ten, room_for(members, ten)) for members in (20, 10, 9, 5, 4, 3, 1)] == [10, 10, 5, 5, 4, 3, 1]
    assert lane_width(ten, None) == 1


def test_too_large_a_member_is_refused_with_its_bytes() -> None:
    with pytest.raises(InputError, match=r"10 members need .* GiB .* the device has 0.00; take fewer members"):
        lane_width(group(10), room_for(0, group(10)) // 2)


def test_members_learn_the_same_in_lanes_of_any_width() -> None:
    runs = []
    for width in (5, 2):
        program = TrainingProgram(group(5), width=width)
        assert len(program.lanes) == -(-5 // width)
        runs.append(program.measure(program.advance(program.begin(), 0, 3)))
    assert len(runs[0]["loss"]) == 5
    np.testing.assert_allclose(runs[0]["loss"], runs[1]["loss"], rtol=1e-5)


def test_the_work_of_a_transformer_is_six_operations_per_weight_and_token_and_its_attention() -> None:
    program = TrainingProgram(group(1))
    tokens, width = 4 * (program.group.sandbox.tokens + 1), 8
    matrices = 4 * width * width + 2 * width * 8 + width * 2  # attention, MLP, readout of two symbols
    attention = 6 * (program.group.sandbox.tokens + 1) * width
    assert work(program).operations == tokens * (6 * matrices + attention)


def test_other_families_count_more_operations_for_more_units() -> None:
    def counted(state: int) -> float:
        sandbox = make_sandbox("markov", {"length": 8, "p": 0.2, "q": 0.3})
        model = make_model("recurrent", {"state": state})
        return work(TrainingProgram(plan(sandbox, model, Recipe(steps=3, batch=4), {}, 1)[0])).operations

    assert 2 < counted(32) / counted(16) < 5


def test_the_limit_is_set_by_the_slower_of_operations_and_bytes() -> None:
    assert Work(100.0, 10.0).limit(Ceilings(1000.0, 1000.0)) == 10.0
    assert Work(100.0, 10.0).limit(Ceilings(1000.0, 50.0)) == 5.0
    assert min(ceilings("float32")) > 1e6


def test_events_tell_the_share_of_the_time_in_steps() -> None:
    events = list(Trainer(TrainingProgram(group(2))).events())
    shares = [event.stepping for event in events if event.rate and not event.runs]
    assert shares
    assert all(0 < share <= 1 for share in shares)
    assert all(event.work == events[-1].work for event in events if event.rate)
