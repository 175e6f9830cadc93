"""The commands of `vitrify benchmark-circuits`: networks with known circuits, and scores of what a method found."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from vitrify.cli.options import AsJson, Command, Commands, arg, opt
from vitrify.cli.render import TextTable, progress, show

Grain = Literal["units", "layers"]
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
    as_json: AsJson = False,
) -> None:
    """Write networks with their test inputs to DIR/NAME, and their circuits to DIR/answers/NAME.json."""
    from vitrify.mechanisms.puzzle import puzzle, write
    from vitrify.mechanisms.zoo import network, networks

    chosen, rows = [name for name in names or networks() if network(name)], []
    with progress("making puzzles") as tick:
        for number, name in enumerate(chosen):
            p = puzzle(name, seed=entangle, grain=grain)
            write(p, folder)
            sizes = (len(p.wired.nodes), len(p.wired.edges), len(p.wired.composed), len(p.circuit.edges))
            rows.append((p.name, *sizes, p.circuit.faithfulness))
            tick(number + 1, len(chosen))
    keys = ("name", "nodes", "edges", "composed", "true", "faithfulness")
    columns = ("network", "nodes", "pairs", "of which compose", "true edges", "faithfulness")
    cells = [(*row, f"{share:.4g}") for *row, share in rows]
    show(
        as_json,
        {"folder": str(folder), "puzzles": [dict(zip(keys, row, strict=True)) for row in rows]},
        TextTable(columns, cells, f"networks → {folder}, answers → {folder / 'answers'}"),
    )


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
