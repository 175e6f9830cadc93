"""Member-steps per second on one GPU: 2 layers, d = 64, 4 heads, T = 128, batch 32, in-context Markov with 8 states.

    python benchmarks/gpu.py [--members 512] [--steps 50] [--learn 1000] [--rows]

The data are drawn inside the step. Prints compile time, member-steps per second and peak memory for float32 and
bfloat16; with `--learn`, how the two learn: the excess losses of the same members on the same rows; with `--rows`,
whether every sandbox draws the same rows on the GPU as on the CPU.
"""

from __future__ import annotations

import argparse
import json
import time

import jax
import numpy as np

from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import entry, examples, names
from vitrify.sandboxes.catalogue import make as make_sandbox


def program(precision: str, members: int, steps: int) -> TrainingProgram:
    """The compiled program of the benchmark."""
    sandbox = make_sandbox("in_context_markov", {"states": 8, "length": 128})
    model = make_model("transformer", {"layers": 2, "heads": 4, "d_model": 64})
    recipe = Recipe(steps=steps, batch=32, lr=1e-3, precision=precision, test_examples=64)  # type: ignore[arg-type]
    return TrainingProgram(plan(sandbox, model, recipe, {}, members)[0])


def same_rows(count: int = 256) -> None:
    """Draw rows of every sandbox on both devices and compare them, bit by bit."""
    for name in names():
        try:
            sandbox = make_sandbox(name, entry(name).small)
            found = []
            for device in (jax.devices("cpu")[0], jax.devices()[0]):
                with jax.default_device(device):
                    row = jax.jit(lambda sandbox=sandbox: examples(sandbox, 0, "train", 0, count))()
                    found.append([np.asarray(part) for part in (row.tokens, row.targets, row.weight)])
        except ImportError as error:
            print(f"{name:20} skipped: {error}")
            continue
        shares = [float(np.mean(one == two)) for one, two in zip(*found, strict=True)]
        print(
            f"{name:20} {'the same' if min(shares) == 1 else f'{min(shares):.6f} of the entries are the same'}",
            flush=True,
        )


def main() -> None:
    """Run both precisions."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--members", type=int, default=512)
    options.add_argument("--steps", type=int, default=50)
    options.add_argument("--learn", type=int, default=0, help="train so many further steps and compare the curves")
    options.add_argument("--rows", action="store_true", help="compare the rows of every sandbox with the CPU's")
    given = options.parse_args()
    device = jax.devices()[0]
    print(f"{device.device_kind}, jax {jax.__version__}, {given.members} members")
    curves = {}
    for precision in ("bfloat16", "float32"):
        made = program(precision, given.members, given.steps + given.learn)
        state = made.begin()
        seconds = made.compiled[3]
        state = made.advance(state, 0, 5)
        began = time.perf_counter()
        state = made.advance(state, 5, given.steps)
        spent = time.perf_counter() - began
        peak = (device.memory_stats() or {}).get("peak_bytes_in_use", 0) / 2**30
        rate = given.members * given.steps / spent
        print(f"{precision:9} compile {seconds:5.1f} s  {rate:8,.0f} member-steps/s  peak {peak:.1f} GiB", flush=True)
        if given.learn:
            state = made.advance(state, 5 + given.steps, given.learn)
            curves[precision] = made.measure(state)["excess"]
        del state
    if curves:
        summary = {name: [float(np.mean(c)), float(np.std(c))] for name, c in curves.items()}
        print("excess over the oracle, mean and deviation over members:", json.dumps(summary))
    if given.rows:
        same_rows()


if __name__ == "__main__":
    main()
