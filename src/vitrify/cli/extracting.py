"""The command that turns a network into a spec."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from vitrify.cli.options import SECONDS, AsJson, Memory, Net, Seed, arg, opt, within
from vitrify.cli.render import VERDICT_COLORS, TextTable, progress, show, styled
from vitrify.errors import InputError

if TYPE_CHECKING:
    from vitrify.extraction import Extraction
    from vitrify.net.weights import Weights

Kind = Literal["automaton", "ngram", "formula", "counter"]
MAX_LINES = 40  # of a spec that is printed
HUGGING_FACE = "hf:"  # in front of the folder of a model


def extract(
    net: Annotated[
        str | None, arg("Model folder, run (ID, best:QUERY; @STEP: a checkpoint) or exported folder.", "NET")
    ] = None,
    kind: Annotated[Kind, opt("Kind of spec to extract.", "--as")] = "automaton",
    out: Annotated[Path | None, opt("Write the spec here.", "--out", "-o", metavar="FILE")] = None,
    max_length: Annotated[int | None, opt("Run all words up to this length. Default: chosen by cost.", min=0)] = None,
    max_states: Annotated[int, opt("States of the largest automaton that is learned, or counter.", min=1)] = 64,
    order: Annotated[int | None, opt("Order of the n-gram model. Default: by measured dependence.", min=1)] = None,
    tolerance: Annotated[
        float, opt("Nats per symbol that an n-gram model may lose against the network.", min=0.0)
    ] = 1e-3,
    words: Annotated[int, opt("Run at most this many words.", min=1)] = 1 << 20,
    seconds: Annotated[
        float, opt("Search for at most this many seconds.", metavar="N", min=0, envvar="VITRIFY_SECONDS")
    ] = SECONDS,
    memory: Memory = None,
    resume: Annotated[
        Path | None, opt("Keep the answers in this file; a later call goes on from it.", metavar="FILE")
    ] = None,
    model: Annotated[
        str | None,
        opt("Instead of NET: module:factory or file.py:factory of a torch or JAX model or a function, or hf:FOLDER."),
    ] = None,
    symbols: Annotated[
        str | None, opt("Of NET: the symbols that words have. With --model: those of its tokens.", metavar="NAME,…")
    ] = None,
    answers: Annotated[str | None, opt("With --model: the symbols of the logits.", metavar="NAME,…")] = None,
    longest: Annotated[int, opt("With --model: the longest word that it reads.", min=1)] = 64,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Extract a spec of a network, with how far they are known to be equal; exit 1 if a counterexample is known."""
    from vitrify.encoding import line
    from vitrify.extraction import extract as extracted
    from vitrify.files import write_text

    if (net is None) == (model is None):
        raise InputError("name one network: NET, or --model FILE.py:FACTORY")
    if net is None:
        weights = _model(str(model), symbols, answers, longest, kind)
    elif answers:
        raise InputError("a network knows its answers: leave --answers out")
    else:
        from vitrify.interop.nets import load

        weights = load(net)
    with progress("running words") as tick, within(f"extracting {kind}", None, memory):
        result = extracted(
            weights,
            kind,
            symbols=symbols.split(",") if symbols and net is not None else None,
            max_length=max_length,
            max_states=max_states,
            order=order,
            tolerance=tolerance,
            words=words,
            seconds=seconds,
            seed=seed,
            resume=resume,
            progress=tick,
        )
    if out is not None:
        result.spec.write(out)
        report = {key: value for key, value in result.to_json().items() if key != "seconds"}
        write_text(_report(out, result), f"{line(report)}\n")
    show(as_json, {"spec": str(out) if out else None} | result.to_json(), *_parts(result, out))
    raise typer.Exit(0 if result.evidence.verdict == "holds" else 1)


def _model(target: str, symbols: str | None, answers: str | None, longest: int, kind: Kind) -> Weights[Any]:
    """Return a model of a user's own as a network."""
    from vitrify.extraction.callables import callable_net
    from vitrify.interop.diagnose.models import attempt, numbers
    from vitrify.interop.diagnose.models import target as model_source
    from vitrify.interop.pretrained import tokens_of_folder

    if not symbols or (not answers and kind != "ngram"):
        raise InputError("say what the tokens and the logits of the model mean: --symbols a,b --answers no,yes")
    letters = symbols.split(",")
    names = answers.split(",") if answers else letters
    if target.startswith(HUGGING_FACE):
        logits, reads = tokens_of_folder(target.removeprefix(HUGGING_FACE), letters, names)
        longest = min(longest, reads - 1)
    else:
        logits = model_source(target).model(max(len(letters) + 1, len(names)), longest + 1, 0, 1e-3).logits
    return callable_net(
        lambda tokens: numbers(attempt(target, lambda: logits(tokens))),
        letters,
        names,
        longest=longest,
        kind="lm" if kind == "ngram" else "class",
        name=target,
    )


def _report(out: Path, result: Extraction) -> Path:
    """Return the file beside a spec that says how far it is what the network computes."""
    return out.with_name(f"{out.name.removesuffix(result.spec.suffix)}.extraction.json")


def _parts(result: Extraction, out: Path | None) -> list[str | TextTable | None]:
    """Return the result as texts and tables."""
    verdict = result.evidence.verdict
    lines = str(result.spec).splitlines()
    errors = [
        (
            each.length,
            f"{each.words:,}",
            f"{each.wrong:,}",
            " – ".join(f"{end:.3g}" for end in dict.fromkeys(each.interval)),
        )
        for each in result.errors
    ]
    columns = ("length", "words compared", "wrong", "share of all words")
    return [
        styled(f"bold {VERDICT_COLORS[verdict]}", verdict, f"  {result.known}"),
        "\n".join([*lines[:MAX_LINES], *(["…"] if len(lines) > MAX_LINES else [])]),
        TextTable(("", ""), list(result.rows())),
        TextTable(columns, errors, "words after which spec and network differ") if errors else None,
        f"→ {out}, {_report(out, result).name}" if out else None,
    ]


def compare(
    net: Net,
    other: Annotated[str, arg("The network that it is compared with.", "OTHER")],
    max_length: Annotated[int | None, opt("Run all words up to this length. Default: 4,096 words.", min=0)] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare two networks on the same words: answers, nearest heads and units (exit 1 if an answer differs)."""
    from vitrify.extraction.comparing import compare as compared
    from vitrify.interop.nets import load

    result = compared(load(net), load(other), max_length=max_length, seed=seed)
    same, rows = result.word is None, []
    for title, parts, fits in (("heads", result.heads, "at most 0.1"), ("units", result.units, "at least 0.9")):
        near = [each.near <= 0.1 if title == "heads" else each.near >= 0.9 for each in parts]
        rows.append((f"{title} with a partner ({fits})", f"{sum(near)} of {len(parts)}"))
    if result.word is not None and result.answers is not None:
        answers = f"{result.answers[0]} and {result.answers[1]}"
        rows.append(
            ("shortest word after which they differ", f"{' '.join(result.word) or 'the empty word'}: {answers}")
        )
    lengths = [(e.length, f"{e.words:,}", "all" if e.complete else "random", f"{e.wrong:,}") for e in result.lengths]
    heads = [(each.name, each.partner or "–", f"{each.near:.3f}") for each in result.heads]
    show(
        as_json,
        {"same": same} | result.to_json(),
        styled("bold green" if same else "bold red", "same answers" if same else "different answers"),
        TextTable(("", ""), rows),
        TextTable(("length", "words", "", "different"), lengths, "answers"),
        TextTable(("head", "nearest of the other", "distance of attention"), heads) if heads else None,
    )
    raise typer.Exit(0 if same else 1)


COMMANDS = (extract, compare)
