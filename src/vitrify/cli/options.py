"""Options that commands share, and those of `vitrify build`: the choices of all constructions, read from signatures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter
    from typer.core import TyperOption

    from vitrify.constructions.catalogue import Construction
    from vitrify.parameters import Parameter as Choice

AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a model folder that `vitrify build` wrote")]
ModelOut = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="the model folder to write")]
Seed = Annotated[int, typer.Option(help="seed of everything random")]
AskParameters = Annotated[bool, typer.Option("--parameters", help="only list the parameters: ranges, defaults")]
KeyValues = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE…", help="parameters; several values (lr=1e-3,3e-3 or seed=0..7) make an axis"),
]
StoreFolder = Annotated[
    Path | None, typer.Option("--store", metavar="DIR", help="the run store; by default, VITRIFY_STORE or ./runs")
]
EvidenceFolder = Annotated[
    Path | None,
    typer.Option(
        "--evidence", metavar="DIR", help="recorded evidence; by default docs/evidence here, or what comes with vitrify"
    ),
]

Scale = Literal["quick", "paper"]
CHOICES = "vitrify.choices"  # where the context of the command holds them
FEW_CONSTRUCTIONS = 4  # so many are named in the help of an option


def _unset(option: TyperOption | None) -> TyperOption | None:
    """Give `--help` a default that is no None: to convert one takes the import of pydantic, half the time of a list."""
    if option is not None:
        option.default = False
    return option


class Commands(TyperGroup):
    """All commands of `vitrify`, or of one of its groups."""

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        return _unset(super().get_help_option(ctx))


class Command(TyperCommand):
    """A command."""

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        return _unset(super().get_help_option(ctx))


class WithNumbers(Command):
    """A command whose arguments may be negative numbers: a blank in front keeps them from being taken for options."""

    NEGATIVE = re.compile(r"-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f" {word}" if self.NEGATIVE.fullmatch(word) else word for word in args])


class WithChoices(Command):
    """A command with one option for each choice; what is given stands in `ctx.meta[CHOICES]`, as text."""

    @cached_property
    def options(self) -> list[Parameter]:
        """The options; reading them takes some milliseconds, which other commands do not spend."""
        from vitrify.constructions.catalogue import offered, option

        def command() -> None: ...

        about = {name: (option(name), _metavar(offers[0][1]), _help(offers)) for name, offers in offered().items()}
        kinds = {n: Annotated[str | None, typer.Option(o, metavar=m, help=h)] for n, (o, m, h) in about.items()}
        arguments = [Argument(n, Argument.KEYWORD_ONLY, default=None, annotation=kind) for n, kind in kinds.items()]
        vars(command)["__signature__"] = Signature(arguments)
        app = typer.Typer(add_completion=False)
        app.command()(command)
        return get_command(app).params

    def get_params(self, ctx: Context) -> list[Parameter]:
        *fixed, about = super().get_params(ctx)
        return [*fixed, *self.options, about]

    def invoke(self, ctx: Context) -> object:
        choices = {str(option.name): ctx.params.pop(str(option.name), None) for option in self.options}
        ctx.meta[CHOICES] = {name: text for name, text in choices.items() if text is not None}
        return super().invoke(ctx)


def _metavar(parameter: Choice) -> str:
    return "|".join(map(str, parameter.choices)) or {int: "INTEGER", float: "NUMBER"}.get(parameter.type, "TEXT")


def _help(offers: Sequence[tuple[Construction, Choice]]) -> str:
    """Return what a choice means, the range of a number, and the constructions, where they are few."""
    texts = "; or: ".join(dict.fromkeys(filter(None, (parameter.help for _, parameter in offers))))
    names = [entry.name for entry, _ in offers]
    few = [f"of {', '.join(names)}"] if len(names) <= FEW_CONSTRUCTIONS else []
    about = [str(offers[0][1].within or ""), *few]
    return f"{texts} ({'; '.join(filter(None, about))})" if any(about) else texts
