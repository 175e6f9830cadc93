"""The commands that run a network, and how answers are printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from vitrify.cli.options import AsJson, Net, arg, opt
from vitrify.cli.render import MAX_SYMBOLS, Part, TextTable, json_line, printable, progress, show, styled, tell
from vitrify.errors import InputError

if TYPE_CHECKING:
    from vitrify.net.answers import Answer

T = TypeVar("T")


def run(
    net: Net,
    tokens: Annotated[list[str] | None, arg("Input symbols, or numbers.", "TOKEN…")] = None,
    image: Annotated[Path | None, opt("Input image (.npy, .csv) or graph (.graph).", "--input", metavar="FILE")] = None,
    trace: Annotated[bool, opt("Also print the attention of every head and every space.", "--trace")] = False,
    everywhere: Annotated[bool, opt("Answer at every position, not only at the last.", "--all")] = False,
    stdin: Annotated[bool, opt("Read a sequence per line; print a JSON line for each.", "--stdin")] = False,
    top: Annotated[int | None, opt("Show only this many of the most probable next tokens.", min=1)] = None,
    steps: Annotated[
        int | None, opt("Generate up to N symbols after the tokens.", "--generate", metavar="N", min=0)
    ] = None,
    seed: Annotated[int | None, opt("With --generate: sample with this seed. Default: the likeliest symbols.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a network on tokens, numbers, an image or a graph; or generate tokens."""
    from vitrify.interop.nets import source
    from vitrify.net import answers
    from vitrify.net.inference import trace as traced

    if stdin and (tokens or trace):
        raise InputError("--stdin reads the sequences from standard input: leave the tokens and --trace out")
    if image and (tokens or trace or stdin or everywhere):
        raise InputError("--input takes one file: leave the tokens, --trace, --all and --stdin out")
    if steps is not None and (image or trace or stdin or everywhere or top):
        raise InputError("--generate takes one prompt: leave --input, --trace, --all, --stdin and --top out")
    if seed is not None and steps is None:
        raise InputError("--seed is for --generate: say how many symbols to generate")
    place = source(net)
    weights = place.weights()
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
        answer = answers.run_generation(weights, words, steps, seed, place.spec())
    else:
        answer = answers.run(weights, words, all_positions=everywhere, top=top)
    activations = str(traced(weights, words)) if trace else None
    if as_json:
        json_line(answer.to_json() | ({"trace": activations} if activations else {}))
        return
    if activations:
        sys.stdout.write(f"{printable(activations)}\n\n")
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
        yield " ".join(f"—{token}→ {state}" if token else state for token, state in pairs)
        yield styled("green", "accepted") if answer.accept else styled("red", "rejected")
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


def perplexity(
    model: Annotated[str, arg("Language model: a network, or an ARPA file.", "MODEL")],
    text: Annotated[Path, arg("Plain text with one sentence per line.", "TEXT")],
    as_json: AsJson = False,
) -> None:
    """Compute the perplexity of a language model on a text, with and without out-of-vocabulary words."""
    from vitrify.interop.nets import load
    from vitrify.net.perplexity import perplexity_of
    from vitrify.spec.ngrams.model import NGramModel
    from vitrify.spec.ngrams.text import sentences

    with progress("reading sentences") as tick:
        source = NGramModel.read(Path(model)) if Path(model).is_file() else load(model)
        result = perplexity_of(source, sentences(text), tick)
    data = asdict(result)
    rows = [
        (name.replace("_", " ").replace("oov", "OOV words"), f"{value:,}" if isinstance(value, int) else value)
        for name, value in data.items()
    ]
    show(as_json, data, TextTable(("", ""), rows, f"{model} on {text}"))


COMMANDS = (run, perplexity)
