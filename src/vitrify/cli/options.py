"""Options that commands share, and those of `vitrify build`: the choices of all constructions, read from signatures."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

if TYPE_CHECKING:
    from typer._click.core import Context, Parameter
    from typer.core import TyperOption

    from vitrify.constructions.catalogue import Construction
    from vitrify.parameters import Parameter as Choice


def opt(text: str, *names: str, **settings: Any) -> Any:
    """Return an option with a help text."""
    return typer.Option(*names, help=text, **settings)


def arg(text: str, metavar: str | None = None, **settings: Any) -> Any:
    """Return an argument with a help text."""
    return typer.Argument(metavar=metavar, help=text, **settings)


AsJson = Annotated[bool, opt("Print JSON instead of text.", "--json")]
Net = Annotated[str, arg("Model folder, run (ID, best:QUERY; @STEP: a checkpoint) or exported folder.", "NET")]
ModelOut = Annotated[Path, opt("Write the model folder here.", "--out", "-o", metavar="DIR")]
MAX_SEED = (1 << 32) - 1
Seed = Annotated[int, opt("Seed of all random choices.", min=0, max=MAX_SEED)]
AskParameters = Annotated[bool, opt("List the parameters with ranges and defaults, and exit.", "--parameters")]
KeyValues = Annotated[
    list[str] | None, arg("Parameters; for `train` also lists: lr=1e-3,3e-3, seed=0..7.", "KEY=VALUE…")
]
StoreFolder = Annotated[Path | None, opt("Run store. Default: VITRIFY_STORE, or ./runs.", "--store", metavar="DIR")]
Open = Annotated[bool, opt("Open it in a browser.", "--open")]
EvidenceFolder = Annotated[
    Path | None, opt("Recorded evidence. Default: ./docs/evidence, or vitrify's own.", "--evidence", metavar="DIR")
]

SECONDS = 3600.0  # that a command may take by default
Seconds = Annotated[
    float, opt("Give up after this many seconds.", "--seconds", metavar="N", min=0, envvar="VITRIFY_SECONDS")
]
Memory = Annotated[
    float | None,
    opt(
        "Give up beyond this many GiB of memory. Default: three quarters of this machine's.",
        "--memory",
        metavar="GIB",
        min=0,
        envvar="VITRIFY_MEMORY",
    ),
]

Scale = Literal["quick", "large"]
ATLAS = Path("build/atlas")  # written by `atlas`, served by `serve`
CHOICES = "vitrify.choices"  # key in the metadata of the command's context
MAX_NAMED = 4  # constructions in the help of an option


def within(doing: str, seconds: float | None, memory: float | None) -> AbstractContextManager[None]:
    """Return a block that may take so many seconds and GiB of memory, by default three quarters of this machine's."""
    from vitrify.limits import MEMORY_SHARE, limited, memory_of_machine

    return limited(doing, seconds, MEMORY_SHARE * memory_of_machine() if memory is None else memory * 2**30)


def end(stop: KeyboardInterrupt) -> int:
    """Say that a command was interrupted; return its exit code, 128 and the number of the signal."""
    sys.stderr.write(f"interrupted{f': {stop}' if str(stop) else ''}\n")
    return 128 + int(getattr(stop, "number", signal.SIGINT))


def browse(address: str) -> None:
    """Open an address in the user's browser."""
    import webbrowser

    webbrowser.open(address)


def complete(values: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return the completion of a word by values that are computed when they are needed."""
    return lambda incomplete: [value for value in dict.fromkeys(values()) if value.startswith(incomplete)]


def entries(package: str) -> list[str]:
    """Return the names of the files of a catalogue; none of them is imported."""
    from vitrify.registry import names

    return names(package)


def construction_names() -> list[str]:
    """Return the names of all constructions."""
    from vitrify.constructions.catalogue import constructions

    return [each.name for each in constructions()]


CLAIM_NAMES = complete(lambda: entries("vitrify.claims"))
ClaimNames = Annotated[
    list[str] | None, arg("Claims, by name, id (R14), words or file (./mine.py).", "NAME…", autocompletion=CLAIM_NAMES)
]
SANDBOX_NAMES = complete(lambda: entries("vitrify.sandboxes"))

CONSTRUCTIONS = complete(construction_names)


P = TypeVar("P", bound="Parameter | None")


def _unconverted(parameter: P) -> P:
    """Skip the conversion of a value that is not given: it takes the import of pydantic, half the time of a list."""
    if parameter is not None and not parameter.required and "process_value" not in vars(parameter):
        convert = parameter.process_value
        parameter.process_value = lambda ctx, value: None if value is None else convert(ctx, value)  # type: ignore[method-assign]
    return parameter


class Commands(TyperGroup):
    """All commands of `vitrify`, or of one of its groups."""

    def get_help_option(self, ctx: Context) -> TyperOption | None:
        return _unconverted(super().get_help_option(ctx))


class Command(TyperCommand):
    """A command; where it is interrupted, its last words say what is kept."""

    def invoke(self, ctx: Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise SystemExit(end(stop)) from None

    def get_params(self, ctx: Context) -> list[Parameter]:
        return [_unconverted(parameter) for parameter in super().get_params(ctx)]


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

        arguments = []
        for name, offers in offered().items():
            values = [*map(str, offers[0][1].choices)]
            metavar = "|".join(values) or {int: "INTEGER", float: "NUMBER"}.get(offers[0][1].type, "TEXT")
            completion = complete(values.copy)
            about = typer.Option(option(name), metavar=metavar, help=_help(offers), autocompletion=completion)
            kind = Annotated[str | None, about]
            arguments.append(Argument(name, Argument.KEYWORD_ONLY, default=None, annotation=kind))
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


def _help(offers: Sequence[tuple[Construction, Choice]]) -> str:
    """Return the meaning of a choice, the range of a number, and the constructions, where they are few."""
    texts = "; or: ".join(dict.fromkeys(filter(None, (parameter.help for _, parameter in offers))))
    names = [entry.name for entry, _ in offers]
    few = [f"of {', '.join(names)}"] if len(names) <= MAX_NAMED else []
    about = [str(offers[0][1].within or ""), *few]
    text = f"{texts} ({'; '.join(filter(None, about))})" if any(about) else texts
    return f"{text[0].upper()}{text[1:]}."
