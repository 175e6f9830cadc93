r"""What an architecture learns, and what of it lasts beyond the trained length, is ordered as the theorems are.

Statement: networks of about the same width, trained on the same rows with the best of a few learning rates, differ as
published. Running parity at twice the trained length: LSTMs and recurrences whose eigenvalues may be negative are
right, recurrences with positive decays and transformers are not. Words of permutations of five points: a product of
reflections follows them, diagonal recurrences and transformers do not. Recall of many pairs: attention, alone or behind
a recurrence, has it before any recurrence alone has. Copying: attention again.
Why: each cell names a row of the atlas that says what weights can do: one reflection per swap (R24), no parity with
positive eigenvalues (R24), one letter of $n$ moves softmax by $O(1/n)$ (B7), permutations of five points are beyond
constant depth unless TC0 = NC1 (B8), a look-up takes one head (R23) but a state must hold all pairs (B5; states here
have the bits that it asks for, so what lags is learning). That weights exist does not say that training finds them.
Checked: every architecture on every task, all learning rates and seeds of all tasks in one program; the learning rate
of a cell is the one with the least median training loss. Each separation is judged seed by seed. Cells that disagree
with their theorem are marked in the figure: *allowed, not found* and *found against a theorem* are two things.
Source: Delétang et al. 2022, arXiv 2207.02098 [S]; Arora et al. 2023, arXiv 2312.04927 [S]; Grazzi et al. 2024,
arXiv 2411.12537 [S]; Jelassi et al. 2024, arXiv 2402.01032 [S]; Merrill et al. 2024, arXiv 2404.08819 [S]. All sizes
are ours and much smaller than theirs.
Saboteur: the rows of the table are filled in under each other's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from vitrify.arrays import Array
from vitrify.certify.evidence import Evidence
from vitrify.claims._agreement import WORDS, agreement
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.afterwards import afterwards
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.hybrid import HybridFamily
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.ssm import StateSpaceFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Sandbox
from vitrify.sandboxes.copying import Copying
from vitrify.sandboxes.dyck import Dyck
from vitrify.sandboxes.medley import Medley
from vitrify.sandboxes.recall import Recall
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata import cyclic, swaps
from vitrify.spec.automaton import Automaton

MARGIN = 0.1  # by which the accuracies of a published separation differ at least
SHARE = 0.8  # of the seeds
SEEDS = tuple(range(8))


class Task(NamedTuple):
    """A column: what is trained on, the same at twice the size, and whether the theorems speak about that one."""

    sandbox: Sandbox
    longer: Sandbox
    beyond: bool


class Separation(NamedTuple):
    """What was published: on a task one architecture is better than others."""

    task: str
    better: str
    worse: tuple[str, ...]
    source: str


PUBLISHED = (
    Separation("parity", "LSTM", ("transformer", "positive"), "Delétang 2022"),
    Separation("parity", "reflections", ("transformer", "positive"), "Grazzi 2024"),
    Separation("parity", "signed", ("transformer", "positive"), "Grazzi 2024"),
    Separation("permutations", "reflections", ("transformer", "positive", "signed"), "Grazzi 2024, Merrill 2024"),
    Separation("recall", "transformer", ("LSTM", "positive", "signed", "reflections"), "Arora 2023"),
    Separation("recall", "hybrid", ("LSTM", "positive", "signed", "reflections"), "Arora 2023"),
    Separation("copying", "transformer", ("LSTM", "positive", "signed"), "Jelassi 2024"),
)

YES, NO = True, False
LOST = {"parity": (NO, "B7"), "modular": (NO, "B7"), "permutations": (NO, "B8")}
FOUND = {"brackets": (YES, "R10"), "recall": (YES, "R23"), "copying": (YES, "R23"), "sorting": (YES, "R31")}
STATE = {"recall": (NO, "B5"), "copying": (NO, "B5")}
AUTOMATA = dict.fromkeys(("parity", "modular", "permutations", "brackets"), (YES, "R24"))
POSITIVE = dict.fromkeys(("parity", "modular", "permutations"), (NO, "R24"))
PREDICTED: dict[str, dict[str, tuple[bool, str]]] = {  # what the weights can be, by a row of the atlas
    "transformer": LOST | FOUND,
    "looped": dict.fromkeys(("parity", "modular", "permutations"), (NO, "R14")) | FOUND,
    "LSTM": AUTOMATA | STATE,
    "positive": POSITIVE | STATE,
    "signed": POSITIVE | STATE | {"parity": (YES, "R24")},
    "reflections": AUTOMATA | STATE,
    "hybrid": POSITIVE | FOUND,
}


@dataclass(frozen=True)
class Setting:
    """The table: its rows, its columns, and how each cell is filled; `under` says whose numbers stand in each row."""

    families: tuple[tuple[str, Family], ...]
    tasks: tuple[tuple[str, Task], ...]
    recipe: Recipe
    rates: tuple[float, ...]
    seeds: tuple[int, ...] = SEEDS
    rows: int = 256
    under: tuple[int, ...] = ()


def regular(automaton: Automaton, length: int) -> Task:
    """Follow an automaton, which is asked for its state after every letter."""
    return Task(Regular(automaton, length, "states"), Regular(automaton, 2 * length, "states"), beyond=True)


def _columns(length: int, pairs: int, vocabulary: int) -> dict[str, Task]:
    """All tasks, at a length."""

    def texts(mode: Literal["copy", "sort"]) -> Task:
        short, long = (Copying(8, size // 2, size, mode) for size in (length // 2, length))
        return Task(short, long, beyond=False)

    few, many = (Recall(vocabulary, times * pairs, times * length, filler="blank") for times in (1, 2))
    short, long = (Dyck(kinds=2, depth=4, length=times * length + 1, asked="closing") for times in (1, 2))
    return {
        "parity": regular(cyclic(2), length),
        "modular": regular(cyclic(5, letters=5), length),
        "permutations": regular(swaps(5), length),
        "brackets": Task(short, long, beyond=True),
        "recall": Task(few, many, beyond=False),
        "copying": texts("copy"),
        "sorting": texts("sort"),
    }


def _rows(width: int, factors: int, loops: int) -> dict[str, Family]:
    """All architectures, at a width."""
    size: Any = {"d_model": width, "units": 2 * width}
    return {
        "transformer": TransformerFamily(layers=2, heads=2, positions="rotary", **size),
        "looped": TransformerFamily(layers=1, loops=loops, heads=2, positions="rotary", **size),
        "LSTM": RecurrentFamily(kind="lstm", state=width, d_embed=width),
        "positive": StateSpaceFamily(kind="positive", layers=2, state=width, **size),
        "signed": StateSpaceFamily(kind="signed", layers=2, state=width, **size),
        "reflections": StateSpaceFamily(kind="householder", factors=factors, layers=2, state=width, **size),
        "hybrid": HybridFamily(kind="positive", layers=2, heads=2, state=width, **size),
    }


def subjects() -> Iterator[Subject]:
    families = _rows(width=32, factors=1, loops=4)
    tasks = _columns(length=16, pairs=4, vocabulary=18)
    recipe = Recipe(steps=500, batch=16, test_rows=128, marks=1)
    rows = tuple((name, families[name]) for name in ("transformer", "LSTM", "positive", "reflections"))
    columns = tuple((name, tasks[name]) for name in ("parity", "permutations", "recall"))
    yield Subject("a part of the table", data={"setting": Setting(rows, columns, recipe, (2e-3, 1e-2), SEEDS[:6], 64)})


def paper() -> Iterator[Subject]:
    families = _rows(width=64, factors=2, loops=5)
    tasks = _columns(length=32, pairs=8, vocabulary=34)
    recipe = Recipe(steps=2000, batch=32, test_rows=256, marks=1)
    setting = Setting(tuple(families.items()), tuple(tasks.items()), recipe, (1e-3, 3e-3, 1e-2))
    yield Subject("the table", data={"setting": setting})


def sabotage(subject: Subject) -> Subject:
    setting: Setting = subject.data["setting"]
    return Subject(subject.name, data={"setting": replace(setting, under=tuple(range(len(setting.families)))[::-1])})


@lru_cache(maxsize=8)
def _measured(
    family: Family,
    tasks: tuple[Task, ...],
    recipe: Recipe,
    rates: tuple[float, ...],
    seeds: tuple[int, ...],
    rows: int,
) -> tuple[Array, Array]:
    """Accuracies [task, seed, at the trained length or twice it] at the best rate, and that rate [task].

    The training loss chooses it, so no row is both chosen by and judged on.
    """
    medley, longer = Medley(tuple(task.sandbox for task in tasks)), Medley(tuple(task.longer for task in tasks))
    numbers = [float(task) for task in range(len(tasks))]
    runs = train(family, medley, axes={"task": numbers, "lr": rates, "seed": seeds}, recipe=recipe)
    shape = len(tasks), len(rates), len(seeds)
    loss = np.array([np.inf if run.last["broken"] >= 0 else run.last["train"] for run in runs]).reshape(shape)
    found = np.array([run.last["accuracy"] for run in runs])
    beyond = afterwards(family, stretched(family, runs, longer), [replace(longer, task=task) for task in numbers], rows)
    each = np.array([[member["accuracy"] for member in task] for task in beyond]).reshape(shape[0], *shape)
    far = each[np.arange(shape[0]), np.arange(shape[0])].ravel()  # every member on its own task
    both = np.stack([found, far], axis=-1).reshape(*shape, 2)
    best = np.median(loss, axis=-1).argmin(axis=-1)
    return both[np.arange(shape[0]), best], np.array(rates)[best]


def stretched(family: Family, runs: list[Run], sandbox: Sandbox) -> list[Run]:
    """The same members with room for longer rows: places that were never trained have a code of zeros."""
    net = family.architecture(sandbox)

    def laid(array: Array, shape: tuple[int, ...]) -> Array:
        return np.pad(array, [(0, want - have) for want, have in zip(shape, np.shape(array), strict=True)])

    shapes = net.shapes()
    arrays = [{name: laid(array, shapes[name]) for name, array in run.weights.arrays.items()} for run in runs]
    return [replace(run, weights=Weights(net, own)) for run, own in zip(runs, arrays, strict=True)]


def parameters(family: Family, sandbox: Sandbox) -> int:
    """How many numbers are trained."""
    net = family.architecture(sandbox)
    return sum(array.size for array in jax.eval_shape(lambda: family.first(net, jax.random.key(0))).values())


def check(subject: Subject) -> Evidence:
    setting: Setting = subject.data["setting"]
    names, columns = [name for name, _ in setting.families], [name for name, _ in setting.tasks]
    tasks = tuple(task for _, task in setting.tasks)
    found = [
        _measured(family, tasks, setting.recipe, setting.rates, setting.seeds, setting.rows)
        for _, family in setting.families
    ]
    found = [found[at] for at in setting.under] if setting.under else found
    table = np.array([accuracies for accuracies, _ in found])  # [architecture, task, seed, size]
    judged = np.stack([table[:, at, :, int(task.beyond)] for at, task in enumerate(tasks)], axis=1)

    def cell(name: str, task: str) -> Array:
        return judged[names.index(name), columns.index(task)]

    asked = [
        Asked(
            f"{one.task}: {one.better} over {worse} ({one.source})",
            (cell(one.better, one.task) - cell(worse, one.task)).tolist(),
            least=MARGIN,
            share=SHARE,
        )
        for one in PUBLISHED
        if one.task in columns and one.better in names
        for worse in one.worse
        if worse in names
    ]
    recipe, medley = setting.recipe, Medley(tuple(task.sandbox for task in tasks))
    sizes = {name: parameters(family, medley) for name, family in setting.families}
    shown = {
        "architectures": names,
        "tasks": columns,
        "accuracy": table.round(4),
        "beyond": [task.beyond for task in tasks],
        "rates": [rates for _, rates in found],
        "predicted": [[PREDICTED[name].get(task) for task in columns] for name in names],
        "parameters": sizes,
        "budget": f"{recipe.steps:,} steps of {recipe.batch} rows",
        "sweep": setting.rates,
        "seeds": len(setting.seeds),
        "lengths": [[task.sandbox.tokens, task.longer.tokens] for task in tasks],
    }
    budget = f"{recipe.steps:,} steps of {recipe.batch} rows, best of the learning rates {setting.rates}"
    where = f"{len(names)} architectures on {len(columns)} tasks"
    return decided(asked, domain=f"{len(setting.seeds)} seeds of {where}, {budget}", seed=0, shown=shown)


def draw(shown: Mapping[str, Any]) -> Any:
    from matplotlib.patches import Patch, Rectangle

    from vitrify.learn.figures import sheet

    (found,) = shown.values()
    names, tasks, table = found["architectures"], found["tasks"], np.array(found["accuracy"])
    title = f"Accuracy after {found['budget']}: median [least, most] of {found['seeds']} seeds"
    figure, planes = sheet(1, 1, title, width=2.2 + 1.75 * len(tasks), height=2.0 + 0.9 * len(names))
    plane = planes[0, 0]
    medians = np.median(table, axis=2)  # [architecture, task, size]
    judged = np.stack([medians[:, at, int(beyond)] for at, beyond in enumerate(found["beyond"])], axis=1)
    image = plane.imshow(judged, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    edges = {"allowed, not found": "darkorange", "found against a theorem": "red"}
    for row, column in np.ndindex(*judged.shape):
        predicted, beyond = found["predicted"][row][column], found["beyond"][column]
        lines = []
        for size, label in enumerate(("1×", "2×")):
            middle, low, high = (f(table[row, column, :, size]) for f in (np.median, np.min, np.max))
            lines.append(f"{label} {middle:.2f} [{low:.2f}, {high:.2f}]" + (" ◂" if size == beyond else ""))
        said = f"{predicted[1]}: {WORDS.get(predicted[1]) or ('can' if predicted[0] else 'not')}" if predicted else "–"
        text = "\n".join([*lines, f"{said}   lr {found['rates'][row][column]:g}"])
        colour = "white" if judged[row, column] > 0.6 else "black"
        plane.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
        edge = edges.get(agreement(float(judged[row, column]), predicted))
        if edge:
            corner = column - 0.47, row - 0.45
            plane.add_patch(Rectangle(corner, 0.94, 0.9, fill=False, edgecolor=edge, linewidth=2.5))
    heads = [f"{task}\n{short} → {long} tokens" for task, (short, long) in zip(tasks, found["lengths"], strict=True)]
    plane.set_xticks(range(len(tasks)), heads, fontsize=8)
    sides = [f"{name}\n{found['parameters'][name]:,} numbers" for name in names]
    plane.set_yticks(range(len(names)), sides, fontsize=8)
    plane.spines[:].set_visible(False)
    marks = [Patch(fill=False, edgecolor=edge, linewidth=2.5, label=label) for label, edge in edges.items()]
    plane.legend(handles=marks, loc="upper left", bbox_to_anchor=(0, -0.12), ncols=2, fontsize=8, frameon=False)
    figure.colorbar(image, ax=plane, label="median accuracy over all places, at the judged length (◂)", shrink=0.8)
    return figure


CLAIM = Claim(
    row="G4",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
