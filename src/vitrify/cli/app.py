"""The commands; each imports what it needs when it runs, so that `vitrify list` stays quick."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from vitrify.cli import atlas, circuits, claims, diagnosing, exchange, learning, serving, training
from vitrify.errors import InputError
from vitrify.spec import SUFFIXES

app = typer.Typer(
    name="vitrify",
    help="Sandboxes become glass boxes: build exact networks from specs, run and certify them, check published claims.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class AttentionChoice(StrEnum):
    """Kinds of attention, as users say them."""

    soft = "soft"
    sparse = "sparse"
    hard = "hard"


class ModeChoice(StrEnum):
    """Ways to compare counts."""

    bounded = "bounded"
    layernorm = "layernorm"


class WithNumbers(TyperCommand):
    """A command whose arguments may be negative numbers: a blank in front keeps them from being taken for options."""

    NEGATIVE = re.compile(r"-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f" {word}" if self.NEGATIVE.fullmatch(word) else word for word in args])


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a model folder that `vitrify build` wrote")]
AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Seed = Annotated[int, typer.Option(help="seed of everything random")]


@app.command()
def build(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help=f"a spec; the end of its name says what it is: {', '.join(SUFFIXES)}"),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="the model folder to write")],
    shape: Annotated[
        str | None,
        typer.Option(
            help="the construction, by name (docs/commands.md has them all; a wrong name is told the right ones)"
        ),
    ] = None,
    attention: Annotated[AttentionChoice, typer.Option(help="soft (softmax), sparse (sparsemax) or hard")] = (
        AttentionChoice.soft
    ),
    max_length: Annotated[int | None, typer.Option("--max-length", min=1, help="longest input, in tokens")] = None,
    positions: Annotated[
        str | None, typer.Option(help="position code: dyadic (the default), quadratic or sqrt")
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="patterns: answer from the last n-1 words; by default, as many as it takes")
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="grammars: drop derivations that are deeper")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="maxout: what soft attention may do to an output; 1e-6 unless said")
    ] = None,
    mode: Annotated[
        ModeChoice | None,
        typer.Option(help="counting programs: bounded (the default), or layernorm, whose weights know no length"),
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(min=1, help="memories: numbers in the code of a word; enough for all, unless said")
    ] = None,
    units: Annotated[
        int | None, typer.Option(min=1, help="memories: hidden units; enough for all, unless said")
    ] = None,
    draw: Annotated[
        int | None, typer.Option("--seed", min=0, help="memories: seed of the random codes; 0 unless said")
    ] = None,
    certified: Annotated[
        bool, typer.Option("--certify", help="also certify it; one that does not hold is not written (exit 1)")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build a network from a spec and write it to a folder."""
    from vitrify.cli import render
    from vitrify.constructions.catalogue import KINDS, Settings
    from vitrify.constructions.catalogue import build as built
    from vitrify.kit.positions import code_name
    from vitrify.net.folder import save
    from vitrify.spec import bounded, read_spec

    with render.status(f"reading {file}") as say:
        spec = read_spec(file) if depth is None else bounded(read_spec(file), depth)
        say("building")
        code = code_name(positions) if positions else None
        settings = Settings(
            attention=KINDS[attention.value],
            max_length=max_length,
            positions=code,
            window=window,
            tolerance=tolerance,
            mode=mode.value if mode else None,
            dimension=dimension,
            units=units,
            seed=draw,
        )
        weights = built(spec, shape, settings)
        if certified:
            from vitrify.certify import certify as examine
            from vitrify.certify.certificate import write_certificate

            say("certifying")
            evidence = examine(weights, spec, prove=True)
            if evidence.verdict != "holds":
                render.certificate(out, evidence, None, as_json)
                raise typer.Exit(1)
        say(f"writing {out}")
        save(weights, out, spec)
        if certified:
            write_certificate(out, evidence)
    render.built(weights, out, as_json)


@app.command()
def analyse(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="an automaton: .automaton.json or .regex")],
    as_json: AsJson = False,
) -> None:
    """Say what an automaton is, algebraically, and how deep each construction would be."""
    from vitrify.cli import render
    from vitrify.spec import read_spec
    from vitrify.spec.analysis import analyse as analysed

    with render.status(f"analysing {file}"):
        report = analysed(read_spec(file))
    render.analysis(report, as_json)


@app.command(cls=WithNumbers)
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
        typer.Option("--decode", metavar="N", min=0, help="write up to N symbols after the tokens, reading each again"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="with --decode: draw the symbols, instead of the likeliest")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a network on a sequence of tokens, on numbers, on an image or a graph; or let it write."""
    from vitrify.cli import render
    from vitrify.net import answers
    from vitrify.net.folder import load, spec_path
    from vitrify.net.run import trace as traced
    from vitrify.spec import read_spec

    if stdin and (tokens or trace):
        raise InputError("--stdin reads the sequences from standard input: leave the tokens and --trace out")
    if image and (tokens or trace or stdin or everywhere):
        raise InputError("--input takes one file: leave the tokens, --trace, --all and --stdin out")
    if steps is not None and (image or trace or stdin or everywhere or top):
        raise InputError("--decode takes one prompt: leave --input, --trace, --all, --stdin and --top out")
    if seed is not None and steps is None:
        raise InputError("--seed is for --decode: say how many symbols to write")
    weights = load(folder)
    if trace and weights.architecture.reads in ("image", "rows"):
        raise InputError(
            "--trace follows symbols or one row of numbers, which this network does not read: leave it out"
        )
    if image:
        render.answer(answers.of_file(weights, image), None, as_json)
        return
    if stdin:
        for answer in answers.stream(weights, sys.stdin, everywhere, top):
            render.json_line(answer)
        return
    words = [word for token in tokens or [] for word in token.split()]
    if steps is not None:
        render.answer(answers.thought(weights, words, steps, seed, read_spec(spec_path(folder))), None, as_json)
        return
    answer = answers.answer(weights, words, everywhere, top)
    seen = traced(weights, words) if trace else None
    render.answer(answer, seen, as_json)


@app.command()
def certify(
    folder: Folder,
    max_length: Annotated[
        int | None,
        typer.Option("--max-length", min=0, help="try all words up to this length; by default, by cost"),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="ask about every prefix of this many random words or sentences")
    ] = None,
    mutations: Annotated[int, typer.Option(min=0, help="also break the net this many times and see it noticed")] = 0,
    proof: Annotated[bool, typer.Option(help="prove the margins for all words up to the maximum length")] = True,
    arithmetic: Annotated[
        bool, typer.Option("--arithmetic", help="say to which length each floating-point format keeps the answers")
    ] = False,
    reals: Annotated[bool, typer.Option("--reals", help="decide all short inputs in real arithmetic, too")] = False,
    attack: Annotated[int, typer.Option(min=0, help="also search this many words for the weakest answer")] = 0,
    write: Annotated[bool, typer.Option(help="write certificate.json into the folder")] = True,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check a network against its spec: all short inputs, random long ones, and margins that hold for every input."""
    from vitrify.certify import campaign
    from vitrify.certify import certify as examine
    from vitrify.certify.certificate import write_certificate
    from vitrify.cli import render
    from vitrify.net.folder import load, spec_path
    from vitrify.spec import read_spec

    if arithmetic and not proof:
        raise InputError("--arithmetic rests on the proof of margins: leave --no-proof out")
    weights, spec = load(folder, verify=False), read_spec(spec_path(folder))
    with render.progress("examining") as tick:
        asked: dict[str, Any] = {"max_length": max_length, "seed": seed, "samples": samples}
        asked |= {"prove": proof, "arithmetic": arithmetic, "reals": reals, "attack": attack}
        evidence = examine(weights, spec, **asked, progress=tick)
    broken = None
    if mutations and evidence.verdict == "holds":
        with render.progress("breaking it on purpose") as tick:
            broken = campaign(weights, spec, count=mutations, seed=seed, progress=tick)
    render.certificate(folder, evidence, broken, as_json)
    if write:
        write_certificate(folder, evidence, broken)
    raise typer.Exit(0 if evidence.verdict == "holds" else 1)


@app.command()
def recheck(folder: Folder, as_json: AsJson = False) -> None:
    """Check a folder against its certificate from scratch, by a small program that shares no code with the rest."""
    from vitrify.cli import render
    from vitrify.recheck import recheck as rechecked

    with render.status(f"rechecking {folder}"):
        found = rechecked(folder)
    render.rechecked(folder, found, as_json)
    raise typer.Exit(1 if found.problem else 2 if found.unjudged else 0)


@app.command()
def bound(
    name: Annotated[str | None, typer.Argument(help="a bound, or how its name begins; none: list them")] = None,
    values: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE…", help="the sizes to ask about")] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a published bound: what it says about given sizes, what it assumes, where it comes from."""
    from vitrify.bounds.calculators.catalogue import bound_of, find, listing, values_of
    from vitrify.cli import render_bounds

    if name is None:
        render_bounds.bounds(listing(), as_json)
        return
    headline = find(name)
    found = bound_of(headline)
    sizes = values_of(found, values or [])
    render_bounds.bound(headline, found, sizes, found.evaluate(sizes), as_json)


@app.command()
def refute(
    folder: Folder,
    task: Annotated[str, typer.Option(help="what the net is to fail at: induction, or copy (recurrent nets)")],
    bits: Annotated[int, typer.Option(min=1, help="bits of every number of the quantised net")] = 8,
    size: Annotated[int | None, typer.Option(min=1, help="pairs or letters in a word; by default, what fits")] = None,
    tries: Annotated[int, typer.Option(min=2, help="inputs to try")] = 1 << 16,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Try to break a net of one attention layer, or a recurrent one: two inputs, one output, different answers."""
    from vitrify.bounds.nets import refute_net
    from vitrify.cli import render_bounds
    from vitrify.net.folder import load

    found = refute_net(load(folder), task, bits=bits, size=size, tries=tries, seed=seed)
    render_bounds.refutation(found, as_json)
    raise typer.Exit(0 if found.search.refutation is None else 1)


@app.command()
def info(folder: Folder, as_json: AsJson = False) -> None:
    """Show what is in a model folder: its sizes, heads, spaces and units."""
    from vitrify.cli import render
    from vitrify.net.folder import load

    render.info(load(folder), as_json)


@app.command()
def explain(
    folder: Folder,
    everything: Annotated[bool, typer.Option("--all", help="do not shorten long tables")] = False,
    formula: Annotated[
        bool, typer.Option("--formula", help="the formula of past-time logic that a hard-attention net computes")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what every space, head and hidden unit does, in words, from the weights."""
    from vitrify.cli import render
    from vitrify.net.folder import load

    weights = load(folder)
    if formula:
        from vitrify.certify.formulas import formula_of

        render.formula(formula_of(weights), as_json)
        return
    from vitrify.net.explain import SHOWN
    from vitrify.net.explain import explain as explained

    render.explanation(explained(weights, shown=None if everything else SHOWN), as_json)


FILES = (claims, atlas, training, learning, serving, exchange, diagnosing)
for command in (command for file in FILES for command in file.COMMANDS):
    app.command(name=command.__name__.removesuffix("_entries"))(command)
app.add_typer(circuits.app)
