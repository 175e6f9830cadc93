"""What theorems and measurements of the atlas say about a kind of architecture on a task, and whether a score agrees.

The kinds and most cells are those of the claim G4, which measures them; tasks that it lacks are added here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vitrify.claims import _agreement
from vitrify.claims import each_architecture_learns_what_its_theorems_allow as table
from vitrify.errors import InputError

OPEN = "not learned as trained"
KINDS: Mapping[str, str] = {
    "transformer": "softmax attention in two or more layers",
    "one layer": "softmax attention in one layer",
    "looped": "attention layers that are run several times",
    "LSTM": "a recurrence with gates that depend on its state",
    "positive": "a recurrence that is linear in its state, decays from 0 to 1: linear attention, Mamba, RWKV",
    "signed": "the same with decays from -1 to 1",
    "reflections": "a linear recurrence by products of reflections: DeltaNet with eigenvalues down to -1",
    "hybrid": "a recurrence and attention",
}


class Law(NamedTuple):
    """What a row of the atlas says of a kind on a task: that it can or can't; and the claim that shows it."""

    can: bool
    row: str
    claim: str

    @property
    def words(self) -> str:
        """In a few words, beside the row."""
        if self.row.startswith("G"):
            return "does" if self.can else "does not"
        return "can" if self.can else COSTS.get(self.row) or CONDITIONS.get(self.row) or "can't"


COSTS: Mapping[str, str] = {**_agreement.WORDS, "R14": "takes depth"}  # rows that say what it costs, not that it can't
CONDITIONS: Mapping[str, str] = {"B8": "can't, if TC0 ≠ NC1"}
CLAIMS: Mapping[tuple[str, str], str] = {  # of a row, for a task where several claims share it; "" for all others
    ("B3", ""): "one_layer_errs_on_composition",
    ("B4", ""): "one_layer_needs_the_length_in_bits_to_be_an_induction_head",
    ("B5", ""): "state_bits_bound_recall_and_copying",
    ("B7", ""): "one_letter_moves_softmax_attention_by_one_over_n",
    ("B8", ""): "finite_precision_softmax_runs_as_threshold_circuits",
    ("G1", ""): "short_programs_generalise_in_length_and_parity_does_not",
    ("G3", ""): "transformers_glitch_on_a_flip_flop_and_lstms_do_not",
    ("R10", ""): "two_layers_generate_bounded_brackets",
    ("R14", ""): "any_automaton_runs_in_log_depth",
    ("R19", ""): "two_layers_compose_functions",
    ("R20", ""): "an_induction_head_takes_two_layers_of_constant_size",
    ("R23", ""): "copying_and_recall_are_look_ups_of_small_width",
    ("R24", ""): "any_automaton_runs_on_one_recurrent_layer",
    ("R24", "diagonal"): "parity_takes_a_diagonal_recurrence_a_negative_eigenvalue",
    ("R24", "permutations"): "permutations_take_one_reflection_less_than_points_per_cycle",
    ("R31", ""): "programs_of_selections_take_one_head_per_look",
}
MORE: Mapping[str, Mapping[str, tuple[bool, str]]] = {
    "transformer": {
        "induction": (True, "R20"),
        "composition": (True, "R19"),
        "flip-flop": (False, "G3"),
        "majority": (True, "G1"),
    },
    "one layer": table.LOST | {"induction": (False, "B4"), "composition": (False, "B3")},
    "LSTM": {"flip-flop": (True, "R24")},
}


def law(kind: str, task: str) -> Law | None:
    """What is said of a kind on a task, if anything is."""
    said = {**table.PREDICTED.get(kind, {}), **MORE.get(kind, {})}.get(task)
    if said is None:
        return None
    can, row = said
    special = "diagonal" if kind in ("positive", "signed", "hybrid") else task if kind == "reflections" else ""
    return Law(can, row, CLAIMS.get((row, special)) or CLAIMS[row, ""])


def laws(task: str) -> dict[str, Law]:
    """All that is said about a task, by kind."""
    found = {kind: law(kind, task) for kind in KINDS}
    return {kind: said for kind, said in found.items() if said is not None}


def agreement(solved: bool, said: Law | None) -> str:
    """What a score says beside what the atlas says; state and measurements are no walls, and can be surpassed."""
    if said is not None and solved and not said.can:
        if said.row in COSTS:
            return f"its {COSTS[said.row].removeprefix('takes ')} suffices"
        if said.row.startswith("G"):
            return "better than was measured"
    return _agreement.agreement(float(solved), said and (said.can, said.row))


def known_kind(kind: str | None) -> str | None:
    """A kind by its name in any case; an unknown one is refused."""
    if kind is None:
        return None
    found = next((name for name in KINDS if name.lower() == kind.lower()), None)
    if found is None:
        raise InputError(f"there is no kind {kind!r}; there are {', '.join(KINDS)}")
    return found


def nearest(solved: Mapping[str, bool]) -> list[str]:
    """The kinds whose laws agree with most of the tasks that were solved or not, against those that disagree."""
    scores = {}
    for kind in KINDS:
        said = {task: law(kind, task) for task in solved}
        right = [bool(found.can) == solved[task] for task, found in said.items() if found is not None]
        scores[kind] = sum(right) - sum(not one for one in right)
    best = max(scores.values(), default=0)
    return [kind for kind, score in scores.items() if score == best and score > 0]
