"""The commands of `vitrify benchmark-circuits`: networks with known circuits, and scores of what a method found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vitrify.cli.options import AsJson, Command, Commands, arg, opt
from vitrify.cli.render import TextTable, progress, show

if TYPE_CHECKING:
    from vitrify.mechanisms.leaderboard import LeaderboardEntry

Grain = Literal["units", "layers"]
Rendering = Literal["plain", "entangled", "softened", "trained", "all"]
Names = Annotated[list[str] | None, arg("Networks of the benchmark. Default: all.", "NAME…")]

app = typer.Typer(
    name="benchmark-circuits",
    cls=Commands,
    help="Benchmark circuit discovery on networks whose circuits are known.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(name="list", cls=Command)
def list_entries(as_json: AsJson = False) -> None:
    """List the networks of the benchmark, by family."""
    from vitrify.mechanisms.zoo import networks

    zoo = networks()
    families = dict.fromkeys(each.family for each in zoo.values())
    rows = [(family, ", ".join(name for name in zoo if zoo[name].family == family)) for family in families]
    data = [{"name": name, "family": each.family, "construction": each.construction} for name, each in zoo.items()]
    show(as_json, data, TextTable(("family", "networks"), rows, f"{len(data)} networks"))


@app.command(cls=Command)
def make(
    folder: Annotated[Path, arg("Folder to write networks and answers to.", "DIR")],
    names: Names = None,
    entangle: Annotated[
        int | None, opt("Hide the circuit in other weights, same function.", metavar="SEED", min=0)
    ] = None,
    grain: Annotated[Grain, opt("Nodes of an MLP: groups of units, or the whole layer.")] = "units",
    rendering: Annotated[Rendering | None, opt("Rendering of each network, or all that exist.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write networks with their test inputs to DIR/NAME, and their circuits to DIR/answers/NAME.json."""
    from vitrify.mechanisms.puzzle import available, renderings, write
    from vitrify.mechanisms.zoo import network, networks

    chosen, rows = [name for name in names or networks() if network(name)], []
    with progress("making puzzles") as tick:
        for number, name in enumerate(chosen):
            one = rendering or ("plain" if entangle is None else "entangled")
            wanted = available(name)
            if one != "all":  # of all networks, those that have the rendering
                wanted = (one,) if names or one in wanted else ()
            for p in renderings(name, wanted, seed=entangle, grain=grain):
                write(p, folder, p.folder if rendering else None)
                sizes = (len(p.wired.nodes), len(p.wired.edges), len(p.wired.composed), len(p.circuit.edges))
                rows.append((p.folder if rendering else p.name, *sizes, p.circuit.faithfulness))
            tick(number + 1, len(chosen))
    keys = ("name", "nodes", "edges", "composed", "true", "faithfulness")
    columns = ("network", "nodes", "candidate edges", "of which compose", "true edges", "faithfulness")
    cells = [(*row, f"{share:.4g}") for *row, share in rows]
    show(
        as_json,
        {"folder": str(folder), "puzzles": [dict(zip(keys, row, strict=True)) for row in rows]},
        TextTable(columns, cells, f"networks → {folder}, answers → {folder / 'answers'}"),
    )


@app.command(cls=Command)
def dataset(
    folder: Annotated[Path, arg("Folder to write models and questions to.", "DIR")],
    names: Names = None,
    truths: Annotated[Path | None, opt("Folder of the true circuits. Default: DIR-truths.", metavar="DIR")] = None,
    as_json: AsJson = False,
) -> None:
    """Write all renderings as a dataset: models, questions, a card and a loader to DIR, the true circuits beside it."""
    from vitrify.mechanisms.dataset import write_dataset
    from vitrify.mechanisms.puzzle import available, renderings
    from vitrify.mechanisms.zoo import network, networks

    chosen = [name for name in names or networks() if network(name)]
    apart = truths or folder.with_name(f"{folder.name}-truths")
    made = ((network(name).family, each) for name in chosen for each in renderings(name, available(name)))
    rows = []
    with progress("writing puzzles") as tick:
        for row in write_dataset(made, folder, apart):
            rows.append(row)
            tick(chosen.index(str(row["puzzle"])) + 1, len(chosen))
    kinds = Counter(str(row["rendering"]) for row in rows)
    title = f"puzzles → {folder}, true circuits → {apart}"
    show(as_json, {"puzzles": rows, "truths": str(apart)}, TextTable(("rendering", "puzzles"), kinds.items(), title))


@app.command(cls=Command)
def run(
    method: Annotated[str, arg("A built-in method, or FILE.py with a function find(folder).", "METHOD")],
    folder: Annotated[Path, arg("Folder of puzzles.", "DIR")],
    answers: Annotated[Path | None, opt("Folder of the true circuits. Default: DIR/answers.", metavar="DIR")] = None,
    out: Annotated[Path | None, opt("Write an entry of the leaderboard.", "--out", "-o", metavar="FILE")] = None,
    about: Annotated[str, opt("What the method does, for the leaderboard.")] = "",
    as_json: AsJson = False,
) -> None:
    """Run a method on all puzzles of a folder, and score what it finds; it sees a copy without the true circuits."""
    from vitrify.files import put
    from vitrify.mechanisms import leaderboard

    names, rows = leaderboard.puzzle_names(folder), []
    with progress("running") as tick:
        for row in leaderboard.run(leaderboard.finder(method), folder, answers or folder / "answers"):
            rows.append(row)
            tick(len(rows), len(names))
    entry = leaderboard.LeaderboardEntry(Path(method).stem, about, tuple(rows))
    if out:
        put(out, dumps(entry.to_json(), ensure_ascii=False) + "\n")
    show(as_json, entry.to_json(), _compared([entry]))


@app.command(cls=Command)
def table(
    entries: Annotated[list[Path], arg("Entries of the leaderboard, JSON.", "FILE…")],
    out: Annotated[Path | None, opt("Write the leaderboard as Markdown.", "--out", "-o", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods in a table: means over puzzles with 95 % intervals."""
    from vitrify.files import put
    from vitrify.mechanisms import leaderboard

    read = [leaderboard.read_entry(path) for path in entries]
    if out:
        put(out, leaderboard.page(read))
    lines = leaderboard.table(read)
    keys = ("rendering", "method", "puzzles", "numbers")
    show(as_json, [dict(zip(keys, line, strict=True)) for line in lines], _compared(read))


def _compared(entries: Sequence[LeaderboardEntry]) -> TextTable:
    """Return the table of some methods."""
    from vitrify.mechanisms.leaderboard import NUMBERS, cell
    from vitrify.mechanisms.leaderboard import table as compared

    rows = [(*first, *(cell(numbers.get(key)) for key in NUMBERS)) for *first, numbers in compared(entries)]
    columns = ("rendering", "method", "puzzles", "AUC", "F1 at the true size", "faithfulness", "completeness")
    return TextTable(columns, rows, "means over puzzles [95 % interval]", keys=2)


@app.command(cls=Command)
def draw(
    answer: Annotated[Path, arg("The true circuit, DIR/answers/NAME.json.", "ANSWER")],
    result: Annotated[Path | None, arg("A circuit that a method found, drawn beside it.", "RESULT")] = None,
    net: Annotated[Path | None, opt("Folder of the network. Default: beside the answers.", metavar="DIR")] = None,
    out: Annotated[Path, opt("SVG file.", "--out", "-o", metavar="FILE")] = Path("circuit.svg"),
) -> None:
    """Draw a circuit: nodes in rows by layer, edges in the color of the input they go to."""
    from vitrify.files import put
    from vitrify.mechanisms.picture import circuit_picture
    from vitrify.mechanisms.puzzle import ANSWER, RESULT, read_json, read_judge
    from vitrify.mechanisms.score import Result

    truth = read_json(answer, ANSWER)
    wired = read_judge(net or answer.parent.parent / answer.stem).wired
    predicted = Result.from_json(read_json(result, RESULT)).within(wired.edges) if result else None
    put(out, circuit_picture(wired, [(str(a), str(b)) for a, b, _ in truth["edges"]], predicted, str(truth["name"])))
    show(False, {}, f"drawing → {out}")


@app.command(cls=Command)
def features(
    answer: Annotated[Path, arg("The true features, DIR/answers/NAME.json.", "ANSWER")],
    result: Annotated[Path, arg("Probes or a dictionary of directions, as JSON.", "RESULT")],
    as_json: AsJson = False,
) -> None:
    """Score probes, or the dictionary of a sparse autoencoder, against the true features of a network."""
    from vitrify.mechanisms.features import score_features
    from vitrify.mechanisms.puzzle import ANSWER, RESULT, read_json

    predicted = asdict(score_features(read_json(answer, ANSWER), read_json(result, RESULT)))
    cells = [(name, f"{value:.4g}") for name, value in predicted.items()]
    show(as_json, predicted, TextTable(("", "value"), cells, "features"))


@app.command(cls=Command)
def score(
    answer: Annotated[Path, arg("The true circuit, DIR/answers/NAME.json.", "ANSWER")],
    result: Annotated[Path, arg("The edges that a method found, as JSON.", "RESULT")],
    net: Annotated[Path | None, opt("Folder of the network. Default: beside the answers.", metavar="DIR")] = None,
    as_json: AsJson = False,
) -> None:
    """Score a discovered circuit: its edges, its nodes, and the answers that it preserves alone."""
    from vitrify.mechanisms.score import score_files

    scores = score_files(answer, result, net)
    agreements = {"edges": scores.edges, "edges between nodes": scores.between_nodes, "nodes": scores.nodes}
    rows = [
        (name, *(f"{value:.4g}" for value in (each.precision, each.recall, each.f1)))
        for name, each in agreements.items()
        if each is not None
    ]
    alone = scores.faithfulness
    show(
        as_json,
        asdict(scores),
        TextTable(("", "precision", "recall", "F1"), rows, scores.name),
        None if scores.auc is None else f"ROC AUC over edges: {scores.auc:.4g}",
        None if alone is None else f"faithfulness, answers of the circuit alone: {alone:.4g}",
    )
