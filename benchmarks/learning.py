"""Training on a CPU, side by side in one run: vitrify, and plain PyTorch loops where torch is installed.

    python benchmarks/learning.py [--seconds 4]

1. one member: 2 layers, d = 128, 4 heads, T = 64, batch 32: steps per second;
2. 32 tiny members (2 layers, d = 32, 2 heads, T = 64, batch 8): member-steps per second, against 32 PyTorch runs that
   go one after the other; for both, rounds of ours and theirs by turns, and the round in the middle;
3. the share of a step that drawing the data takes;
4. tokens per second of the generators, against vectorised NumPy samplers that loop over steps;
5. compile time of a fresh program, and of the same program from the cache on disk.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.catalogue import make as make_sandbox

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles.rows import reference

CHAINS = {"states": 10, "length": 64}
LARGE = {"layers": 2, "heads": 4, "d_model": 128}
SMALL = {"layers": 2, "heads": 2, "d_model": 32}
LOOP = 20  # batches that are drawn in one call
ROUNDS = 5
TRIAL = 4  # steps after which the length of a piece is chosen
GENERATORS = {
    "markov 16×1024": ("markov", {"length": 1024}, 16),
    "markov 512×1024": ("markov", {"length": 1024}, 512),
    "in_context_markov 64×100, 10 states": ("in_context_markov", {"states": 10, "length": 100}, 64),
    "chain 64×100, 10 states": ("chain", {"states": 10, "length": 100}, 64),
    "hierarchy L=3": ("hierarchy", {"v": 16, "m": 4, "L": 3}, 10_000),
    "hierarchy L=8": ("hierarchy", {"v": 16, "m": 4, "L": 8}, 1000),
}


def program(sizes: dict[str, int], batch: int, members: int) -> TrainingProgram:
    """The program of a benchmark."""
    sandbox = make_sandbox("in_context_markov", CHAINS)
    recipe = Recipe(steps=10_000, batch=batch, lr=1e-3, test_examples=64)
    return TrainingProgram(plan(sandbox, make_model("transformer", sizes), recipe, {}, members)[0])


def repeated(act: Callable[[int], Any], seconds: float, clock: Callable[[], float] = time.perf_counter) -> float:
    """How often per second something can be done; it is told how often it was done before."""
    began, done = clock(), 0
    while clock() - began < seconds:
        act(done)
        done += 1
    return done / (clock() - began)


def ours(made: TrainingProgram, seconds: float) -> float:
    """Member-steps per second, in pieces of about a second, as training goes."""
    began = time.perf_counter()
    held = {"lanes": made.advance(made.begin(), 0, TRIAL)}
    piece = max(TRIAL, round(TRIAL / (time.perf_counter() - began)))

    def act(done: int) -> None:
        held["lanes"] = made.advance(held["lanes"], TRIAL + done * piece, piece)

    return repeated(act, seconds) * piece * len(made.group.members)


def theirs(sizes: dict[str, int], batch: int, seconds: float) -> float | None:
    """Steps per second of a plain PyTorch loop of the same shape, with data that were drawn before."""
    try:
        import torch
    except ImportError:
        return None
    from torch import nn
    from torch.nn.functional import cross_entropy, scaled_dot_product_attention

    width, heads, states, length = sizes["d_model"], sizes["heads"], CHAINS["states"], CHAINS["length"]

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(self.ln1(x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + self.out(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            return x + self.mlp(self.ln2(x))

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(states + 1, width)
            self.place = nn.Parameter(torch.randn(length, width) / width**0.5)
            self.layers = nn.Sequential(*(Layer() for _ in range(sizes["layers"])))
            self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, states)

        def forward(self, tokens: Any) -> Any:
            return self.head(self.ln(self.layers(self.embed(tokens) + self.place)))

    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0)
    tokens, targets = reference(make_sandbox("in_context_markov", CHAINS), np.random.default_rng(0), batch)
    inputs = torch.tensor(np.pad(tokens + 1, ((0, 0), (1, 0)))).long()
    wanted = torch.tensor(targets).long().flatten()

    def act(_: int) -> None:
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(net(inputs).flatten(0, 1), wanted).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    act(0)
    return repeated(act, seconds)


def generated(name: str, parameters: dict[str, int], count: int, seconds: float) -> tuple[float, float]:
    """Batches per second: ours, in a compiled loop as in training, and the plain NumPy sampler's."""
    box, rng = make_sandbox(name, parameters), np.random.default_rng(0)

    def step(at: Any, _: Any) -> Any:
        return examples(box, 0, "train", at.astype(jnp.uint32) * count, count)[:2]

    make = jax.jit(lambda start: jax.lax.fori_loop(start, start + LOOP, step, step(start, None)))
    make(jnp.int32(0))
    mine = repeated(lambda n: make(jnp.int32(n * LOOP))[0].block_until_ready(), seconds / 2)
    mine *= LOOP + 1
    plain = repeated(lambda _: reference(box, rng, count), seconds / 2)
    return mine, plain


def compared(title: str, made: TrainingProgram, sizes: dict[str, int], batch: int, seconds: float, bar: float) -> None:
    """One line: both figures of the round with the middle ratio, beside the ratio wanted."""
    rounds = [(ours(made, seconds), theirs(sizes, batch, seconds)) for _ in range(ROUNDS)]
    if rounds[0][1] is None:
        mine = sorted(mine for mine, _ in rounds)[ROUNDS // 2]
        print(f"{title}: {mine:,.1f}/s; torch is not installed, so there is nothing to compare with", flush=True)
        return
    found = sorted((mine / other, mine, other) for mine, other in rounds if other)
    ratio, mine, other = found[ROUNDS // 2]
    every = ", ".join(f"{each[0]:.2f}" for each in found)
    print(f"{title}: {mine:,.1f}/s, PyTorch {other:,.1f}/s: {ratio:.2f}x of {every} (wanted: {bar:g}x)", flush=True)


def main() -> None:
    """Run everything."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=4.0)
    seconds = options.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        config: Any = jax.config
        config.update("jax_compilation_cache_dir", folder)
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        one = program(LARGE, 32, 1)
        fresh = one.compiled[3]
        forget: Any = jax.clear_caches
        forget()
        again = program(LARGE, 32, 1).compiled[3]
        print(f"compiling: {fresh:.1f} s, from the cache on disk {again:.1f} s", flush=True)
        compared("one member, d = 128", one, LARGE, 32, seconds, 1.0)
        compared("32 members, d = 32", program(SMALL, 8, 32), SMALL, 8, seconds, 3.3)
        spent = 1 / ours(one, seconds)
        share = 1 / generated("in_context_markov", CHAINS, 32, seconds)[0] / spent
        print(f"data: {share:.2%} of a step (wanted: at most 10 %)")
        for title, (name, parameters, count) in GENERATORS.items():
            mine, plain = generated(name, parameters, count, seconds)
            size = count * (make_sandbox(name, parameters).tokens + 1) / 1e6
            bar = 1 if name == "hierarchy" else 5
            print(
                f"{title}: {mine * size:.0f} M tokens/s, NumPy {plain * size:.1f}: {mine / plain:.1f}x (wanted: {bar}x)"
            )


if __name__ == "__main__":
    main()
