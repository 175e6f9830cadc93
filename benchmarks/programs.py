"""Programs at several sizes: width, parameters, compile time and wrong answers; then the same beside other compilers.

    python benchmarks/programs.py [--sizes 4x5,8x10,16x20,32x50,64x200] [--words 1000] [--only sort,reverse]
                                  [--attention hard] [--peer-words 40] [--peer-limit 150]

Tracr and torchwright are run side by side where they are installed. Where they are not, or do not finish in time, the
table shows their figures as they were measured once, marked as stored.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vitrify.certification.oracles.programs import ProgramOracle
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.program import program_net
from vitrify.kit import assemble
from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.programs.program import Program

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from benchmarks.compilers import Rival, installed, rival

from peers import FIGURES, Figure
from programs import diamonds, usual_programs

SIDE_BY_SIDE = (*FIGURES, Figure("tracr", "dyck1", 32, 50, 0, 0))  # of the last there is no stored figure
TORCHWRIGHT = ("running count", "shift", "detect", "fraction of previous", "pair balance")


def random_words(spec: Program, count: int) -> list[NDArray[np.int64]]:
    """Random words of several lengths, the first two of each of one symbol; symbols count from 0."""
    rng, letters = np.random.default_rng(0), len(spec.alphabet)
    lengths = sorted({1, 2, spec.length // 2, spec.length})
    found = [rng.integers(0, letters, size=(count // len(lengths) + 2, length)) for length in lengths]
    for words in found:
        words[0], words[1] = 0, letters - 1
    return found


def wrong_words(weights: Weights, spec: Program, count: int) -> int:
    """On how many random words some position is wrong."""
    net = weights.architecture
    oracle, wrong = ProgramOracle(spec, net), 0
    for words in random_words(spec, count):
        step = max(1, (1 << 23) // net.activations(words.shape[1] + 1))
        for at in range(0, len(words), step):
            asked = words[at : at + step] + 1
            seen = np.concatenate([np.zeros((len(asked), net.pads), dtype=np.int64), asked], axis=1)
            logits = batch_logits(weights, seen)[:, net.pads - 1 :]
            wrong += int((oracle.errors(asked, logits) > oracle.tolerance()).any(axis=1).sum())
    return wrong


def built(spec: Program, attention: Attention = "softmax") -> tuple[Weights, float]:
    """A net of ours, and the seconds that it took."""
    start = time.perf_counter()
    weights = assemble(program_net(spec, attention=attention))
    return weights, time.perf_counter() - start


def library(sizes: list[str], only: list[str], words: int, attention: Attention) -> None:
    head = f"{'program':22}{'symbols':>8}{'length':>7}{'layers':>7}{'heads':>6}{'width':>6}{'units':>7}"
    print(head + f"{'parameters':>12}{'compiled':>10}{'wrong words':>13}")
    for size in filter(None, sizes):
        letters, length = map(int, size.split("x"))
        for spec in usual_programs(letters, length):
            if only and spec.name not in only:
                continue
            weights, seconds = built(spec, attention)
            net = weights.sizes
            row = f"{spec.name:22}{letters:8}{length:7}{net.layers:7}{net.heads:6}{net.d_model:6}{net.units:7}"
            print(row + f"{net.dense:12,}{seconds:9.3f}s{wrong_words(weights, spec, words):13}", flush=True)


def beside(figure: Figure, words: int, limit: int) -> str:
    """One line: our net and that of another compiler."""
    spec = figure.ours()
    weights, seconds = built(spec)
    net, ours = weights.sizes, wrong_words(weights, spec, words)
    row = f"{figure!s:28}{net.d_model:6}{net.dense:9,}{seconds:8.3f}s{ours:6}   {figure.peer:12}"
    theirs = rival(figure.peer, spec, limit)
    if isinstance(theirs, Rival):
        asked = [word for group in random_words(spec, words) for word in group.tolist()]
        width, parameters, note = theirs.width, theirs.parameters, f"{theirs.seconds:8.3f}s"
        note += f"{theirs.wrong(asked):4} of {len(asked)}  measured now"
    else:
        width, parameters, note = figure.width, figure.parameters, f"{'':9}{'':12}stored ({theirs})"
    if not parameters:
        return row + f"{'—':>6}{'—':>12}{'':16}{theirs}"
    ratios = f"{net.d_model / width:6.3f}{net.dense / parameters:9.5f}"
    return row + f"{width:6,}{parameters:12,}{ratios}" + note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="4x5,8x10,16x20,32x50,64x200")
    parser.add_argument("--words", type=int, default=1_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--attention", default="softmax", choices=["softmax", "sparsemax", "hard"])
    parser.add_argument("--peer-words", type=int, default=40)
    parser.add_argument("--peer-limit", type=int, default=150, help="seconds that another compiler may take")
    chosen = parser.parse_args()
    only = [name for name in chosen.only.split(",") if name]
    assemble(program_net(usual_programs(2, 3)[0]))  # imports are not part of a compile time
    library(chosen.sizes.split(","), only, chosen.words, chosen.attention)

    spec = diamonds(60)
    print(f"\n{spec.name} compile in {built(spec)[1]:.3f} s, {diamonds(120).name} in {built(diamonds(120))[1]:.3f} s\n")
    for peer in ("tracr", "torchwright"):
        if not installed(peer):
            print(f"{peer} is not installed: its figures are stored ones, where there are any")
    more = [Figure("torchwright", name, 32, 50, 0, 0) for name in TORCHWRIGHT if installed("torchwright")]
    print(
        f"{'program':28}{'width':>6}{'params':>9}{'time':>9}{'wrong':>6}   {'beside':12}{'width':>6}{'params':>12}",
        end="",
    )
    print(f"{'ratio w':>8}{'ratio p':>8}{'time':>8}{'wrong':>7}")
    for figure in (*SIDE_BY_SIDE, *more):
        if not only or figure.program in only:
            print(beside(figure, chosen.peer_words, chosen.peer_limit), flush=True)


if __name__ == "__main__":
    main()
