"""The commands that check networks against their specs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitrify.cli.options import MAX_SEED, SECONDS, AsJson, Memory, Net, Seconds, Seed, opt, within
from vitrify.cli.render import VERDICT_COLORS, Part, TextTable, json_line, progress, show, status, styled, tell
from vitrify.encoding import JsonMapping
from vitrify.errors import BudgetSpent, FolderError, InputError

if TYPE_CHECKING:
    from vitrify.certification import Evidence, MutationTest


def certify(
    net: Net,
    max_length: Annotated[int | None, opt("Test all words up to this length. Default: chosen by cost.", min=0)] = None,
    samples: Annotated[
        int | None, opt("Test every prefix of this many random words or sentences.", min=1, max=1 << 20)
    ] = None,
    mutants: Annotated[int, opt("If it holds, break the net in this many ways, and count those detected.", min=0)] = 0,
    proof: Annotated[
        bool, opt("Prove both links for all words: weights = ideal network, ideal network = spec.")
    ] = True,
    arithmetic: Annotated[
        bool, opt("Find the length up to which answers are right in each number format.", "--arithmetic")
    ] = False,
    reals: Annotated[bool, opt("Also test all short inputs in real arithmetic, without rounding.", "--reals")] = False,
    attack: Annotated[
        int | None, opt("Search this many words for a wrong answer. Default: what takes about a second.", min=0)
    ] = None,
    spec: Annotated[
        Path | None, opt("Judge it by this spec, of the same symbols. Default: that of the folder.", metavar="FILE")
    ] = None,
    accepting: Annotated[
        str | None, opt("With an automaton: the answer of a network with two answers that means yes.", metavar="ANSWER")
    ] = None,
    symbols: Annotated[
        str | None, opt("Judge it on words of these symbols only. Default: all that it reads.", metavar="NAME,…")
    ] = None,
    max_error: Annotated[
        float | None, opt("Judge probabilities or numbers as right within this error. Default: rounding.", min=0.0)
    ] = None,
    write: Annotated[bool, opt("Write certificate.json: into the folder, or beside a run into a new one.")] = True,
    accept_spec: Annotated[
        bool, opt("Judge the network by its spec file even if that changed since the build.", "--accept-spec")
    ] = False,
    seed: Seed = 0,
    seconds: Seconds = SECONDS,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Check a network against its spec: test short and long inputs, and prove it for all where that succeeds."""
    from vitrify.certification import certify as check_against_spec
    from vitrify.certification import mutation_test
    from vitrify.certification.certificate import write_certificate
    from vitrify.certification.recognition import allowing, reading, recognizing
    from vitrify.interop.nets import CERTIFIED, ModelFolder, source
    from vitrify.net.folder import save
    from vitrify.spec import find_spec

    if arithmetic and not proof:
        raise InputError("--arithmetic rests on the proof of margins: leave --no-proof out")
    with within(f"certifying {net}", seconds, memory):
        place = source(net)
        weights, own = place.weights(verify=False), None if spec else place.spec(accept_changed=accept_spec)
        judge = find_spec(spec) if spec else own
        if judge is None:
            raise FolderError(f"{net} holds no spec to check the network against: name one with --spec FILE")
        weights = reading(weights, symbols.split(",")) if symbols else weights
        weights = allowing(recognizing(weights, judge, accepting), max_error)
        with progress("checking") as tick:
            evidence = check_against_spec(
                weights,
                judge,
                max_length=max_length,
                seed=seed,
                samples=samples,
                prove=proof,
                arithmetic=arithmetic,
                reals=reals,
                attack=attack,
                progress=tick,
            )
        broken = None
        if mutants and evidence.verdict == "holds":
            try:
                with progress("breaking it on purpose") as tick:
                    broken = mutation_test(weights, judge, count=mutants, seed=seed, progress=tick)
            except BudgetSpent as spent:
                evidence = replace(evidence, notes=(*evidence.notes, f"left out: the mutation test: {spent}"))
    changed = spec is not None or max_error is not None or symbols is not None
    copied = changed or not isinstance(place, ModelFolder)
    home = place.path / CERTIFIED if copied and isinstance(place, ModelFolder) else place.certified
    if write:
        if copied:
            save(weights, home, judge)
        write_certificate(home, evidence, broken)
    show_certificate(home if write else net, evidence, broken, as_json)  # last: who reads it may go away
    raise typer.Exit(0 if evidence.verdict == "holds" else 1)


def show_certificate(net: object, evidence: Evidence, broken: MutationTest | None, as_json: bool) -> None:
    """Print the verdict on a network."""
    if as_json:
        extra = {} if broken is None else {"mutation_test": asdict(broken) | {"rate": broken.rate}}
        json_line({"folder": str(net), "methods": evidence.methods} | evidence.to_json() | extra)
        return
    from vitrify.report import wording

    rows = [
        *wording.links(evidence),
        ("tested", "\n".join(wording.domains(evidence))),
        ("cases", f"{evidence.cases:,}"),
        *wording.lines(evidence),
        ("seed, time", f"{evidence.seed}, {evidence.seconds:.1f} s"),
    ]
    if evidence.witness:
        rows.append((styled("red", "witness"), "\n".join(f"{k}: {v}" for k, v in evidence.witness.items())))
    if broken is not None:
        rows.append(("mutants rejected", f"{broken.rejected} of {broken.tried} ({broken.rate:.1%})"))
        rows += [("survivor", f"{what}: {why}") for what, why in broken.survivors]
    rows += [("", remark) for remark in wording.remarks(evidence)]
    words = f"{evidence.verdict} {wording.error(evidence)}".strip() if evidence.verdict == "holds" else evidence.verdict
    verdict = styled(f"bold {VERDICT_COLORS[evidence.verdict]}", words, f"  {net}")
    tell(verdict, TextTable(("", ""), rows), *_margins(evidence.proof))


def _margins(proof: JsonMapping | None) -> Iterator[Part]:
    """Yield tables: proved gaps of heads, errors of spaces, and lengths up to which answers in a format are right."""
    if proof is None:
        return
    heads = [(h["name"], h["attends_to"], "-" if h["gap"] is None else h["gap"], h["leak"]) for h in proof["heads"]]
    spaces = [
        (s["name"], s["kind"], "within bounds" if s["values"] is None else f"{s['values']:,}", s["error"])
        for s in proof["spaces"]
    ]
    formats = []
    for each in proof.get("arithmetic", {"formats": []})["formats"]:
        proved = "none" if each["proved"] is None else f"{each['proved']:,}"
        measured = "not tried" if each["kept"] is None else f"{each['kept']:,}"
        measured += ", then another answer" if each["broken"] else ""
        formats.append((each["name"], proved, "-" if each["error"] is None else each["error"], measured))
    yield TextTable(("head", "attends to", "β times the gap", "leaked weight"), heads) if heads else None
    yield TextTable(("space", "kind", "values", "error"), spaces) if spaces else None
    columns = ("format", "proved to length", "logits within", "measured to length")
    yield TextTable(columns, formats) if formats else None


def recheck(
    net: Net,
    seed: Annotated[int | None, opt("Seed of the random words. Default: a fresh one.", min=0, max=MAX_SEED)] = None,
    as_json: AsJson = False,
) -> None:
    """Check a folder against its certificate with a small separate program that shares no code with the builder."""
    from vitrify.interop.nets import ModelFolder, source
    from vitrify.rechecking import recheck as rechecked
    from vitrify.report.wording import LINKS

    place = source(net)
    if not isinstance(place, ModelFolder) and not place.certified.is_dir():
        raise FolderError(f"{net} has no certificate: 'vitrify certify {net} --spec FILE' writes one")
    with status(f"rechecking {place.certified}"):
        opinion = rechecked(place.certified, seed)
    partly = any("not derived again" in line for line in opinion.links.values())
    verdict = ("green", "agrees with what it derives again" if partly else "agrees")
    verdict = ("yellow", "not judged") if opinion.unjudged else verdict
    color, words = ("red", "does not agree") if opinion.problem else verdict
    rows = [("problem", opinion.problem)] if opinion.problem else []
    rows += [("not judged", f"answers are not computed again: {opinion.unjudged}")] if opinion.unjudged else []
    rows += [(LINKS[name], line) for name, line in opinion.links.items() if not opinion.problem]
    rows += [("done", line) for line in opinion.done]
    rows += [("not done here", line) for line in opinion.left if not opinion.problem]
    agrees = None if opinion.unjudged else opinion.problem is None
    data = {"folder": str(net), "agrees": agrees} | asdict(opinion)
    show(as_json, data, styled(f"bold {color}", words, f"  {net}"), TextTable(("", ""), rows))
    raise typer.Exit(1 if opinion.problem else 2 if opinion.unjudged else 0)


COMMANDS = (certify, recheck)
