"""The commands that run a network, and how answers are printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from vitrify.cli.options import MAX_SEED, AsJson, Net, arg, opt
from vitrify.cli.render import MAX_SYMBOLS, Part, TextTable, json_line, printable, progress, show, styled, tell
from vitrify.errors import InputError

if TYPE_CHECKING:
    from vitrify.net.answers import Answer
    from vitrify.net.scoring import FileScore

MAX_CELL = 60  # characters of a sequence or an answer in the table of disagreements

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
    seed: Annotated[
        int | None, opt("With --generate: sample with this seed. Default: the likeliest symbols.", min=0, max=MAX_SEED)
    ] = None,
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
        yield styled("yellow", f"cut short: {answer.cut_short}") if answer.cut_short else None
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


def score(
    net: Net,
    file: Annotated[
        Path | None, arg("File or folder with sequences and right answers; - is standard input.", "FILE")
    ] = None,
    decode: Annotated[
        bool, opt("Generate after each sequence; without FILE, read standard input.", "--decode")
    ] = False,
    steps: Annotated[
        int | None, opt("With --decode: generate up to N symbols. Default: up to the length.", metavar="N", min=0)
    ] = None,
    append: Annotated[
        str | None, opt("Put this symbol behind each sequence, once for each symbol of its output.", metavar="SYMBOL")
    ] = None,
    longest: Annotated[int | None, opt("Leave out sequences of more symbols, and count them.", min=0)] = None,
    tolerance: Annotated[float, opt("Numbers agree if they differ by at most this, or this share.", min=0)] = 1e-6,
    shown: Annotated[int, opt("Show the first N disagreements.", "--show", metavar="N", min=0)] = 10,
    as_json: AsJson = False,
) -> None:
    """Compare a network with a file of sequences and right answers: agreement, disagreements, perplexity."""
    from vitrify.interop.nets import source
    from vitrify.net.scoring import score as agreement

    if file is None and not decode:
        raise InputError("name a file or folder with right answers, or - for standard input")
    if steps is not None and not decode:
        raise InputError("--steps is for --decode: leave it out")
    place = source(net)
    with progress(f"scoring {file or ''}") as tick:
        result = agreement(
            place.weights(),
            sys.stdin if file is None or file == Path("-") else file,
            decode=decode,
            steps=steps,
            spec=place.spec() if decode else None,
            append=append,
            longest=longest,
            tolerance=tolerance,
            shown=shown,
            tick=tick,
        )
    show(as_json, result.to_json(), *_score(result))
    raise typer.Exit(0 if result.agrees else 1)


def _score(score: FileScore) -> Iterator[Part]:
    """Yield a score as text and tables."""
    if score.agreement:
        words = f"{score.agreeing:,} of {score.sequences:,} sequences agree"
        share = score.agreeing * 10_000 // score.sequences / 100  # rounded down: 100 % is all of them
        yield styled("bold green" if score.agrees else "bold red", words, f" ({share:.2f} %)")
    if len(score.agreement) > 1:
        rows = [(name, f"{tally.compared:,}", f"{tally.agreed:,}") for name, tally in score.agreement.items()]
        yield TextTable(("answer", "compared", "agree"), rows)
    if score.perplexity is not None:
        yield f"perplexity {score.perplexity:.6g} on {score.tokens:,} tokens"
    if score.left_out:
        yield f"{score.left_out:,} longer sequences are left out"
    if score.cut_short:
        yield f"{score.cut_short:,} thoughts are cut short: they count as disagreements"
    if score.ignored:
        names = ", ".join(f"{name} ({count:,})" for name, count in score.ignored.items())
        yield f"not compared, as such a network does not say it: {names}"
    if score.disagreements:
        cells = [[_short(each) for each in vars(place).values()] for place in score.disagreements]
        yield TextTable(("place", "sequence", "answer", "expected", "network"), cells, "first disagreements")


def _short(value: object) -> str:
    """Return a value for a cell: symbols in a row, sets in order, at most a few dozen characters."""
    if isinstance(value, list):
        text = " | ".join(map(_short, value))
    elif isinstance(value, tuple | frozenset):
        text = " ".join(map(str, sorted(value) if isinstance(value, frozenset) else value)) or "(empty)"
    else:
        text = "no answer" if value is None else str(value)
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


COMMANDS = (run, perplexity, score)
