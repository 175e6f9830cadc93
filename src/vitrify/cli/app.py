"""The commands; each imports what it needs when it runs, so that `vitrify list` stays quick."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated

import typer

import vitrify
from vitrify.cli import circuits
from vitrify.cli.options import Command, Commands, WithChoices, WithNumbers, opt

HELPS = ("-h", "--help", "--install-completion", "--show-completion")
PANELS = {  # files of this folder, each with a tuple COMMANDS
    "Networks": ("building", "running", "certifying", "extracting", "exchange"),
    "Claims and bounds": ("claims", "evidence", "bounds", "serving"),
    "Training": ("data", "training", "diagnosing"),
}
# Completion imports much that `vitrify list` does without: it is offered where it is used, and in the help.
COMPLETES = "_VITRIFY_COMPLETE" in os.environ or any(word in HELPS for word in sys.argv) or len(sys.argv) == 1
KINDS: dict[str, type[Command]] = {"build": WithChoices, "run": WithNumbers}

app = typer.Typer(
    name="vitrify",
    cls=Commands,
    help="Compile specs into networks with exact, labelled weights; run, certify and train; check published claims.",
    no_args_is_help=True,
    add_completion=COMPLETES,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"vitrify {vitrify.__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, opt("Print the version and exit.", "--version", callback=_version)] = False,
) -> None:
    """Take the options before a command."""


for panel, file in ((panel, file) for panel, files in PANELS.items() for file in files):
    for command in import_module(f"vitrify.cli.{file}").COMMANDS:
        name = command.__name__.removesuffix("_entries")
        app.command(name=name, cls=KINDS.get(name, Command), rich_help_panel=panel)(command)
app.add_typer(circuits.app, rich_help_panel="Training")
