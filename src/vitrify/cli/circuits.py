"""The commands of `vitrify benchmark-circuits`: networks with known circuits, and scores of what a method found."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from vitrify.cli.options import AsJson, Command, Commands
from vitrify.cli.render import TextTable, progress, show

Grain = Literal["units", "layers"]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="networks of the zoo; all unless said")]

app = typer.Typer(
    name="benchmark-circuits",
    cls=Commands,
    help="Networks whose circuits are known: list them, make puzzles of them, score what a method found.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(name="list", cls=Command)
def list_entries(as_json: AsJson = False) -> None:
    """List the networks of the zoo, by family."""
    from vitrify.mechanisms.zoo import ZOO

    families: dict[str, list[str]] = {}
    for name, resident in ZOO.items():
        families.setdefault(resident.family, []).append(name)
    rows = [(family, ", ".join(names)) for family, names in families.items()]
    data = [{"name": name, "family": each.family, "construction": each.construction} for name, each in ZOO.items()]
    show(as_json, data, TextTable(("family", "networks"), rows, f"{len(ZOO)} networks"))


@app.command(cls=Command)
def make(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to write networks and answers to")],
    names: Names = None,
    entangle: Annotated[
        int | None, typer.Option(metavar="SEED", min=0, help="hide the circuit: the same function from other weights")
    ] = None,
    grain: Annotated[Grain, typer.Option(help="what an MLP is: groups of units, or one layer")] = "units",
    as_json: AsJson = False,
) -> None:
    """Write networks with their questions to DIR/NAME, and their circuits to DIR/answers/NAME.json."""
    from vitrify.mechanisms.puzzle import puzzle, write
    from vitrify.mechanisms.zoo import ZOO, resident

    chosen, rows = [name for name in names or ZOO if resident(name)], []
    with progress("making puzzles") as tick:
        for number, name in enumerate(chosen):
            p = puzzle(name, seed=entangle, grain=grain)
            write(p, folder)
            sizes = (len(p.wired.nodes), len(p.wired.edges), len(p.wired.composed), len(p.circuit.edges))
            rows.append((p.name, *sizes, p.circuit.faithfulness))
            tick(number + 1, len(chosen))
    keys = ("name", "nodes", "edges", "composed", "true", "faithfulness")
    columns = ("network", "nodes", "pairs", "of which compose", "true edges", "answers kept")
    cells = [(*row, f"{share:.4g}") for *row, share in rows]
    show(
        as_json,
        {"folder": str(folder), "puzzles": [dict(zip(keys, row, strict=True)) for row in rows]},
        TextTable(columns, cells, f"networks → {folder}, answers → {folder / 'answers'}"),
    )


@app.command(cls=Command)
def score(
    answer: Annotated[Path, typer.Argument(metavar="ANSWER", help="the answer, DIR/answers/NAME.json")],
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="the edges a method found, as JSON")],
    net: Annotated[
        Path | None, typer.Option(metavar="DIR", help="the network's folder; by default beside the answers")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a circuit that a method found: edges, nodes, and what the network still answers with it alone."""
    from vitrify.mechanisms.score import score_files

    scores = score_files(answer, result, net)
    agreements = {"edges": scores.edges, "edges between nodes": scores.between_nodes, "nodes": scores.nodes}
    rows = [
        (name, *(f"{value:.4g}" for value in (each.precision, each.recall, each.f1)))
        for name, each in agreements.items()
        if each is not None
    ]
    faithfulness = scores.faithfulness
    show(
        as_json,
        asdict(scores),
        TextTable(("", "precision", "recall", "F1"), rows, scores.name),
        None if scores.auc is None else f"ROC AUC over edges: {scores.auc:.4g}",
        None if faithfulness is None else f"answers kept by the circuit alone: {faithfulness:.4g}",
    )
