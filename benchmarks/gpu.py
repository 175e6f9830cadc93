"""Training on one GPU: rate, limit, share of the limit, memory and compile time of several programs, in one run.

    python benchmarks/gpu.py [PROGRAM …] [--learn STEPS] [--rows] [--cache FOLDER]

The first programs are one workload: 2 layers, d = 64, 4 heads, T = 128, batch 32, in-context Markov chains of 8 states,
drawn in the step, by number of members and precision. Others are a larger net and other families. Columns:

- rate: member-steps per second, from 3 pieces of training, the middle one;
- flops, bytes: of one member-step. By hand for transformers: 6 per weight and token and 6 T d per token and layer for
  causal attention; the arrays that every kernel reads and writes once. Else by XLA's count of the compiled step;
- limit: member-steps per second if the larger of two times were all: flops over the rate of a plain matrix product
  (8192³, same numbers), bytes over the bandwidth of a plain copy (4 GiB), both measured in this run;
- share: rate over limit; of products: flops per second over those of the plain matrix product;
- peak: memory since the run began; compile: the step loop, the measurement and the start, cold.

`--learn` trains further and prints the excess losses; `--rows` compares the rows of every sandbox with the CPU's;
`--cache` keeps compiled programs in a folder: run it twice.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from vitrify.learn.cost import ceilings, work
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Precision, Recipe
from vitrify.sandboxes.catalogue import entry, examples, names
from vitrify.sandboxes.catalogue import make as make_sandbox

NETS = {"layers": 2, "heads": 4, "d_model": 64}
WIDE = {"layers": 4, "heads": 8, "d_model": 256}
CHAINS = {"states": 8, "length": 128}
PIECES = 3
PIECE_SECONDS = 0.7


class Program(NamedTuple):
    """A workload: what is trained, how many members, and the numbers it computes with."""

    sandbox: str
    settings: dict[str, Any]
    model: str
    sizes: dict[str, Any]
    members: int
    batch: int = 32
    precision: Precision = "bfloat16"

    def made(self) -> TrainingProgram:
        """The program, not yet compiled."""
        sandbox, model = make_sandbox(self.sandbox, self.settings), make_model(self.model, self.sizes)
        recipe = Recipe(steps=10**6, batch=self.batch, lr=1e-3, precision=self.precision, test_examples=64)
        return TrainingProgram(plan(sandbox, model, recipe, {}, self.members)[0])


HIERARCHY = {"v": 16, "m": 4, "L": 5}
PROGRAMS = {
    "members 64": Program("in_context_markov", CHAINS, "transformer", NETS, 64),
    "members 512": Program("in_context_markov", CHAINS, "transformer", NETS, 512),
    "members 512 float32": Program("in_context_markov", CHAINS, "transformer", NETS, 512, precision="float32"),
    "members 2048": Program("in_context_markov", CHAINS, "transformer", NETS, 2048),
    "members 8192": Program("in_context_markov", CHAINS, "transformer", NETS, 8192),
    "d 256": Program("in_context_markov", {"states": 8, "length": 256}, "transformer", WIDE, 16, 64),
    "convolutional": Program("hierarchy", HIERARCHY, "hierarchical", {"channels": 128}, 64, 128),
    "lstm": Program("in_context_markov", CHAINS, "recurrent", {"kind": "lstm", "state": 64}, 64),
    "state space": Program("in_context_markov", CHAINS, "ssm", {"layers": 2, "d_model": 64, "state": 64}, 64),
}


def rate(program: TrainingProgram) -> float:
    """Return member-steps per second."""
    lanes = program.begin()
    rates: list[float] = []
    lanes, count, step = program.advance(lanes, 0, 2), 2, 2
    while len(rates) < PIECES:
        began = time.perf_counter()
        lanes = program.advance(lanes, step, count)
        spent, step = time.perf_counter() - began, step + count
        if spent > PIECE_SECONDS / 2 or rates:
            rates.append(len(program.group.members) * count / spent)
        count = max(1, round(count * min(PIECE_SECONDS / spent, 10)))
    return float(np.median(rates))


def learned(name: str, steps: int) -> None:
    """Train and print the excess over the optimum: its mean over members and the standard error of that."""
    program = PROGRAMS[name].made()
    excess = program.measure(program.advance(program.begin(), 0, steps))["excess"]
    print(
        f"{name}: excess after {steps} steps {excess.mean():.5f} ± {excess.std() / np.sqrt(len(excess)):.5f}",
        flush=True,
    )


def same_rows(count: int = 256) -> None:
    """Draw rows of every sandbox on both devices and compare them, bit by bit."""
    for name in names():
        rows = []
        try:
            sandbox = make_sandbox(name, entry(name).small)
            for device in (jax.devices("cpu")[0], jax.devices()[0]):
                with jax.default_device(device):
                    row = jax.jit(lambda sandbox=sandbox: examples(sandbox, 0, "train", 0, count))()
                    rows.append([np.asarray(part) for part in (row.tokens, row.targets, row.weight)])
        except ImportError as error:
            print(f"{name:20} skipped: {error}")
            continue
        share = min(float(np.mean(one == two)) for one, two in zip(*rows, strict=True))
        print(f"{name:20} {'the same' if share == 1 else f'{share:.6f} of the entries are the same'}", flush=True)


def main() -> None:
    """Measure the programs that are named, or all."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"any of: {', '.join(PROGRAMS)}")
    options.add_argument("--learn", type=int, default=0, help="train for this many steps and print the excess loss")
    options.add_argument("--rows", action="store_true", help="compare the rows of every sandbox with the CPU's")
    options.add_argument("--cache", help="a folder for compiled programs")
    chosen = options.parse_args()
    if chosen.cache:
        cast(Any, jax.config).update("jax_compilation_cache_dir", chosen.cache)
    device = jax.devices()[0]
    tops = {precision: ceilings(precision) for precision in ("bfloat16", "float32")}
    for precision, (flops, bandwidth) in tops.items():
        print(f"{device.device_kind}, jax {jax.__version__}, {precision}:", end=" ")
        print(f"{flops / 1e12:.0f} Tflop/s, {bandwidth / 1e12:.2f} TB/s")
    head = f"{'program':21}{'rate/s':>10}{'Mflop':>9}{'MB':>8}{'limit/s':>10}{'share':>7}{'of products':>13}"
    print(f"{head}{'peak GiB':>10}{'compile s':>11}{'lanes':>7}")
    for name in chosen.programs or PROGRAMS:
        program = PROGRAMS[name].made()
        per_second = rate(program)
        flops, size = own = work(program)
        top, _ = ceiling = tops[PROGRAMS[name].precision]
        limit = own.limit(ceiling)
        peak = (device.memory_stats() or {}).get("peak_bytes_in_use", 0) / 2**30
        figures = f"{per_second:10,.0f}{flops / 1e6:9,.0f}{size / 1e6:8,.1f}{limit:10,.0f}{per_second / limit:7.0%}"
        figures += f"{per_second * flops / top:13.0%}"
        print(f"{name:21}{figures}{peak:10.1f}{program.compile_seconds:11.1f}{len(program.lanes):7}", flush=True)
        if chosen.learn:
            learned(name, chosen.learn)
        del program
    if chosen.rows:
        same_rows()


if __name__ == "__main__":
    main()
