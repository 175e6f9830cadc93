"""Programs at several sizes: width, parameters, compile time and wrong answers, beside the figures of other compilers.

    python benchmarks/programs.py [--sizes 4x5,8x10,16x20,32x50,64x200] [--words 1000] [--only sort,reverse]

Tracr is run side by side where it is installed; where it is not, the column shows its figures measured once at its
default settings, at 32 symbols and length 50.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

from vitrify.certify.program_oracle import ProgramOracle
from vitrify.constructions.program import program_net
from vitrify.kit import assemble
from vitrify.net.run import batch_logits
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.program_file import Program

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from programs import usual_programs

TRACR = {
    "reverse": (369, 8_180_000),
    "sort": (1_769, 51_200_000),
    "sort unique": (169, 155_000),
    "histogram": (137, 58_700),
}


def wrong_answers(weights: Weights, spec: Program, count: int) -> int:
    """Wrong answers on random words of several lengths, on words of one symbol, on words of one letter."""
    rng, net = np.random.default_rng(0), weights.architecture
    oracle, letters, wrong = ProgramOracle(spec, net), len(spec.alphabet), 0
    lengths = sorted({1, 2, net.max_length // 2, net.max_length})
    for length in lengths:
        words = rng.integers(1, letters + 1, size=(count // len(lengths) + 2, length))
        words[0], words[1] = 1, letters
        step = max(1, (1 << 23) // net.activations(length + 1))
        for at in range(0, len(words), step):
            asked = words[at : at + step]
            seen = np.concatenate([np.zeros((len(asked), 1), dtype=np.int64), asked], axis=1)
            wrong += int((oracle.errors(asked, batch_logits(weights, seen)) > oracle.tolerance()).sum())
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="4x5,8x10,16x20,32x50,64x200")
    parser.add_argument("--words", type=int, default=1_000)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    for peer in ("tracr", "torchwright"):
        if importlib.util.find_spec(peer) is None:
            print(f"{peer} is not installed: its runs are left out")
    assemble(program_net(usual_programs(2, 3)[0]))  # imports are not part of a compile time
    head = f"{'program':22}{'symbols':>8}{'length':>7}{'layers':>7}{'heads':>6}{'width':>6}{'units':>7}"
    print(head + f"{'parameters':>12}{'compiled':>10}{'wrong':>6}  tracr: width, parameters")
    for size in chosen.sizes.split(","):
        letters, length = map(int, size.split("x"))
        for spec in usual_programs(letters, length):
            if chosen.only and spec.name not in chosen.only.split(","):
                continue
            start = time.perf_counter()
            weights = assemble(program_net(spec))
            seconds = time.perf_counter() - start
            net = Ledger.of(weights)
            row = f"{spec.name:22}{letters:8}{length:7}{net.layers:7}{net.heads:6}{net.d_model:6}{net.units:7}"
            row += f"{net.dense:12,}{seconds:9.3f}s{wrong_answers(weights, spec, chosen.words):6}"
            peer_width, peer_size = TRACR.get(spec.name, (0, 0)) if (letters, length) == (32, 50) else (0, 0)
            print(row + (f"  {peer_width:,}, {peer_size:,}" if peer_size else ""), flush=True)


if __name__ == "__main__":
    main()
