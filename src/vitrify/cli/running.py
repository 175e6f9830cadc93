"""The command that runs a network, and how answers are printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from vitrify.cli.options import AsJson, Folder
from vitrify.cli.render import MAX_SYMBOLS, Part, Styled, TextTable, json_line, tell
from vitrify.errors import InputError

if TYPE_CHECKING:
    from vitrify.net.answers import Answer

T = TypeVar("T")


def run(
    folder: Folder,
    tokens: Annotated[list[str] | None, typer.Argument(metavar="TOKEN…", help="the input: symbols, or numbers")] = None,
    image: Annotated[
        Path | None,
        typer.Option("--input", metavar="FILE", help="an image, .npy or .csv, or a .graph, instead of tokens"),
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="also print every head's attention and every space")] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="answer at every position, not only at the last")] = False,
    stdin: Annotated[bool, typer.Option("--stdin", help="one sequence per line in, one JSON line each out")] = False,
    top: Annotated[int | None, typer.Option(min=1, help="only the most probable next tokens")] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--generate", metavar="N", min=0, help="generate up to N symbols after the tokens; stops at an end symbol"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="with --generate: sample with this seed, instead of the likeliest symbols")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a network on a sequence of tokens, on numbers, on an image or a graph; or let it write."""
    from vitrify.net import answers
    from vitrify.net.folder import load, spec_path
    from vitrify.net.inference import trace as traced
    from vitrify.spec import read_spec

    if stdin and (tokens or trace):
        raise InputError("--stdin reads the sequences from standard input: leave the tokens and --trace out")
    if image and (tokens or trace or stdin or everywhere):
        raise InputError("--input takes one file: leave the tokens, --trace, --all and --stdin out")
    if steps is not None and (image or trace or stdin or everywhere or top):
        raise InputError("--generate takes one prompt: leave --input, --trace, --all, --stdin and --top out")
    if seed is not None and steps is None:
        raise InputError("--seed is for --generate: say how many symbols to write")
    weights = load(folder)
    if trace and weights.architecture.reads in ("image", "rows"):
        raise InputError(
            "--trace follows symbols or one row of numbers, which this network does not read: leave it out"
        )
    words = [word for token in tokens or [] for word in token.split()]
    if stdin:
        for each in answers.run_lines(weights, sys.stdin, everywhere, top):
            json_line(each.to_json())
        return
    if image:
        answer = answers.run_file(weights, image)
    elif steps is not None:
        answer = answers.run_generation(weights, words, steps, seed, read_spec(spec_path(folder)))
    else:
        answer = answers.run(weights, words, all_positions=everywhere, top=top)
    activations = str(traced(weights, words)) if trace else None
    if as_json:
        json_line(answer.to_json() | ({"trace": activations} if activations else {}))
        return
    if activations:
        sys.stdout.write(f"{activations}\n\n")
    tell(*_answer(answer))


def _answer(answer: Answer) -> Iterator[Part]:
    """Return an answer to one sequence, as texts and tables."""
    from vitrify.net import answers

    if isinstance(answer, answers.NextTokenAnswer):
        for prefix, distribution in _after(answer, answer.distributions):
            likeliest = sorted(distribution.items(), key=lambda item: -item[1])[:MAX_SYMBOLS]
            cells = [(token, f"{probability:.6g}") for token, probability in likeliest]
            yield TextTable(("next token", "probability"), cells, f"after {prefix}")
            if len(distribution) > MAX_SYMBOLS:
                yield f"… and {len(distribution) - MAX_SYMBOLS} more; --json shows all"
    elif isinstance(answer, answers.LegalNextAnswer):
        for prefix, legal in _after(answer, answer.legal):
            more = f" … and {len(legal) - MAX_SYMBOLS} more; --json shows all" if len(legal) > MAX_SYMBOLS else ""
            yield f"after {prefix}: {' '.join(legal[:MAX_SYMBOLS]) or 'nothing'}{more}"
    elif isinstance(answer, answers.StatesAnswer):
        pairs = zip(["", *answer.tokens], answer.states, strict=True)
        yield Styled(" ".join(f"—{token}→ {state}" if token else state for token, state in pairs))
        yield Styled("[green]accepted[/green]" if answer.accept else "[red]rejected[/red]")
    elif isinstance(answer, answers.GenerationAnswer):
        yield " ".join(answer.symbols)
        steps = "1 step" if len(answer.symbols) == 1 else f"{len(answer.symbols)} steps"
        yield steps + (", stopped" if answer.stopped else "")
        yield from (f"{name} = {value}" for name, value in answer.conclusion.items())
    elif isinstance(answer, answers.ConnectedAnswer):
        yield from (" ".join(nodes) for nodes in dict.fromkeys(answer.connected.values()))
    elif isinstance(answer, answers.ValuesAnswer):
        yield from (f"{name} = {value!r}" for name, value in answer.values.items())
    elif isinstance(answer, answers.ImageAnswer):
        yield answer.label
        for name, corners in answer.detections.items():
            where = ", ".join(f"row {row} column {column}" for row, column in corners[:MAX_SYMBOLS])
            yield f"  {name}: {where}{' …' if len(corners) > MAX_SYMBOLS else ''}"
    elif isinstance(answer, answers.ClassAnswer):
        yield " ".join(answer.labels)
    else:
        yield " ".join(answer.output)


def _after(answer: Answer, items: Sequence[T]) -> Iterator[tuple[str, T]]:
    """Return each item with the prefix of the tokens that it is an answer to: the last items of all prefixes."""
    for length, item in enumerate(items, start=len(answer.tokens) + 1 - len(items)):
        yield " ".join(answer.tokens[:length]) or "nothing", item


COMMANDS = (run,)
