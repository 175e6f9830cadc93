"""The commands of `vitrify benchmark-circuits`: networks with known circuits, and scores of what a method found."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="networks of the zoo; all unless said")]

app = typer.Typer(
    name="benchmark-circuits",
    help="Networks whose circuits are known: list them, make puzzles of them, score what a method found.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class GrainChoice(StrEnum):
    """What an MLP is: one node for each group of units, or one for the layer."""

    units = "units"
    layers = "layers"


@app.command(name="list")
def list_entries(as_json: AsJson = False) -> None:
    """List the networks of the zoo, by family."""
    from vitrify.cli import render_circuits
    from vitrify.mechanisms.zoo import ZOO

    render_circuits.zoo(ZOO, as_json)


@app.command()
def make(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to write networks and answers to")],
    names: Names = None,
    entangle: Annotated[
        int | None, typer.Option(metavar="SEED", min=0, help="hide the circuit: the same function from other weights")
    ] = None,
    grain: Annotated[GrainChoice, typer.Option(help="what an MLP is: groups of units, or one layer")] = (
        GrainChoice.units
    ),
    as_json: AsJson = False,
) -> None:
    """Write networks with their questions to DIR/NAME, and their circuits to DIR/answers/NAME.json."""
    from vitrify.cli import render, render_circuits
    from vitrify.mechanisms.puzzle import puzzle, write
    from vitrify.mechanisms.zoo import ZOO, resident

    chosen = [name for name in names or ZOO if resident(name)]
    made = []
    with render.progress("making puzzles") as tell:
        for number, name in enumerate(chosen):
            made.append(puzzle(name, seed=entangle, grain=grain.value))
            write(made[-1], folder)
            tell(number + 1, len(chosen))
    render_circuits.made(made, folder, as_json)


@app.command()
def score(
    answer: Annotated[Path, typer.Argument(metavar="ANSWER", help="the answer, DIR/answers/NAME.json")],
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="what a method found (docs/circuits.md)")],
    net: Annotated[
        Path | None, typer.Option(metavar="DIR", help="the network's folder; beside the answers unless said")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a circuit that a method found: edges, nodes, and what the network still answers with it alone."""
    from vitrify.cli import render_circuits
    from vitrify.mechanisms.score import score_files

    render_circuits.scored(score_files(answer, result, net), as_json)
