"""Draw the pictures of the tutorials, the explanations and the gallery; `make picture` draws all of them.

    python tools/gallery.py            # all
    python tools/gallery.py regions    # one, by name

Every number in them is computed here, by the public functions that the pages name. Two of them train 32 seeds, which
takes about a minute on two cores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import vitrify as v
from vitrify.learn.flow import Slice, portrait
from vitrify.learn.landscape import strings
from vitrify.learn.probes import attention_on, induction, previous_token
from vitrify.sandboxes.catalogue import Example, Predictor
from vitrify.sandboxes.markov import Markov
from vitrify.spec.geometry.maxout import random_maxout
from vitrify.spec.geometry.regions import regions
from vitrify.spec.tasks.k_hop import KHop

OUT = Path(__file__).parents[1] / "docs" / "pictures"
INK, SOFT = "#1d2733", "#8a97a6"
DPI = 110
MEMBERS, STEPS, LENGTH = 32, 256, 32  # of the tutorial about the induction head
CHAIN = {"states": 4, "alpha": 0.3, "length": LENGTH}


def main(names: Sequence[str]) -> None:
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.titlesize": 11, "svg.hashsalt": "vitrify"})
    for name in names or PICTURES:
        figure = PICTURES[name]()
        figure.savefig(OUT / f"{name}.png", dpi=DPI, metadata={"Software": None})
        plt.close(figure)
        print(OUT / f"{name}.png")


def sheet(columns: int, width: float, height: float, title: str = "") -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(1, columns, figsize=(width, height), layout="constrained", squeeze=False)
    if title:
        figure.suptitle(title)
    return figure, list(axes[0])


def pattern(axes: Axes, weights: Any, tokens: Sequence[str], title: str) -> None:
    """Draw an attention pattern: query positions down, key positions across."""
    axes.imshow(np.asarray(weights), cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(tokens)), tokens)
    axes.set_yticks(range(len(tokens)), tokens)
    axes.tick_params(length=0)
    axes.set(title=title, xlabel="key", ylabel="query")


def induction_net() -> Figure:
    """Attention patterns of the compiled two-layer induction head."""
    net = v.build(KHop(hops=1, symbols=4, length=12))
    word = list("abcadbcabdca")
    trace = v.trace(net, word)
    figure, axes = sheet(2, 9, 4.7)
    pattern(axes[0], trace["blocks.0.attn.hook_pattern"][0], trace.tokens, "layer 1: the previous token")
    pattern(axes[1], trace["blocks.1.attn.hook_pattern"][0], trace.tokens, "layer 2: the token after the last match")
    return figure


def brackets() -> Figure:
    """Depth and matching bracket in the compiled Dyck network."""
    net = v.build(v.Dyck((("(", ")"), ("[", "]")), depth=4, length=32))
    word = list("([()][])[()]")
    trace = v.trace(net, word)
    figure, axes = sheet(2, 9.5, 4.7)
    depth = trace.read("depth")
    axes[0].step(range(len(depth)), depth, where="mid", color="C0")
    axes[0].plot(range(len(depth)), depth, "o", color="C0")
    axes[0].set_xticks(range(len(depth)), trace.tokens)
    axes[0].set_yticks(range(max(depth) + 1))
    axes[0].set(title="layer 1: depth, decoded from the residual stream", xlabel="position", ylabel="open brackets")
    pattern(axes[1], trace["blocks.1.attn.hook_pattern"][0], trace.tokens, "layer 2: the bracket to close next")
    return figure


def residual_stream() -> Figure:
    """Which named space each dimension holds, at every moment of a run."""
    net = v.build(v.Automaton.from_regex("(ab|ba)*"), max_length=8)
    moments = ["embedding"] + [f"{part} {layer + 1}" for layer in range(3) for part in ("attention", "MLP")]
    figure, (axes,) = sheet(
        1, 9, 4.6, "Residual stream of the network for (ab|ba)*: dimensions and the spaces they hold"
    )
    for number, space in enumerate(net.labels.spaces):
        start, count, end = space.born, len(space.dims), space.dies + 1
        color = colormaps["Set3"](number % 12)
        box = Rectangle((start, space.dims[0]), end - start, count, facecolor=color, edgecolor="white", linewidth=2)
        axes.add_patch(box)
        middle = (start + end) / 2, space.dims[0] + count / 2
        axes.text(*middle, space.name, ha="center", va="center", fontsize=9)
    axes.set(xlim=(0, len(moments)), ylim=(net.sizes.d_model, 0), ylabel="dimension")
    axes.set_xticks(np.arange(len(moments)) + 0.5, [f"after\n{moment}" for moment in moments])
    axes.set_yticks(np.arange(net.sizes.d_model) + 0.5, [str(number) for number in range(net.sizes.d_model)])
    axes.tick_params(length=0)
    return figure


def gaps() -> Figure:
    """Attention leaked to wrong keys, by temperature, and what units that clip make of it."""
    spec = v.Automaton.from_regex("(ab|ba)*")
    net = v.build(spec, max_length=8)
    chosen, keys = float(net.arrays["blocks.0.attn.beta"][0]), 9
    betas = np.linspace(1, 12, 45)
    leaks, errors = [], []
    for beta in betas:
        changed = net.with_array("blocks.0.attn.beta", np.array([beta]))
        trace = v.trace(changed, "abbaabba")
        leaks.append(1 - trace["blocks.0.attn.hook_pattern"][0].max(axis=-1).min())
        errors.append(max(np.abs(trace.space("map 1") - v.trace(net, "abbaabba").space("map 1")).max(), 1e-15))
    figure, axes = sheet(2, 9.5, 3.9)
    axes[0].semilogy(betas, leaks, label="largest leak, measured")
    axes[0].semilogy(betas, (keys - 1) * np.exp(-betas), "--", label=r"bound $(n-1)\,e^{-\beta g}$")
    axes[0].set(title="attention weight on wrong keys", xlabel=r"inverse temperature $\beta$")
    axes[1].semilogy(betas, errors, color="C2", label="error of the space that the MLP writes")
    axes[1].set(title="after the MLP has snapped the values", xlabel=r"inverse temperature $\beta$")
    for each in axes:
        each.axvline(chosen, color=SOFT, linestyle=":", label=rf"$\beta$ of the network: {chosen:g}")
        each.legend(fontsize=9)
    return figure


def optimum() -> Figure:
    """Loss of the exact Bayes predictor and of simpler ones, position by position."""
    sandbox = v.sandbox("in_context_markov", **CHAIN)
    batch = v.examples(sandbox, seed=0, split="test", start=0, count=4000)
    figure, (axes,) = sheet(1, 7.5, 4)
    predictors = {
        "counts of single symbols": sandbox.predictors()["unigram"],
        "counts of pairs: the exact Bayes predictor": sandbox.optimal,
    }
    for label, predict in predictors.items():
        losses = jax.vmap(partial(nats, predict))(batch)
        axes.plot(range(LENGTH), np.asarray(losses).mean(axis=0), label=label)
    axes.axhline(np.log(4), color=SOFT, linestyle=":", label="uniform: ln 4")
    axes.set(
        title="in_context_markov, 4 states, α = 0.3: loss after t tokens",
        xlabel="t",
        ylabel="nats per symbol",
        ylim=(0.7, 1.6),
    )
    axes.legend(fontsize=9, loc="upper right")
    return figure


def nats(predict: Predictor, example: Example) -> Any:
    """Return the loss of a predictor at every position of an example."""
    return -jnp.take_along_axis(predict(example), example.targets[:, None], axis=1)[:, 0]


@cache
def trained(steps: int, members: int) -> list[v.Run]:
    """Return the members that the tutorial about the induction head trains."""
    sandbox = v.sandbox("in_context_markov", **CHAIN)
    model = v.model("transformer", layers=2, heads=1, d_model=32, units=0, pads=0)
    recipe = v.Recipe(steps=steps, batch=32, lr=0.005, test_examples=128, evals_per_doubling=3)
    probes = {"back": attention_on(previous_token), "match": attention_on(induction)}
    return v.train(model, sandbox, members=members, recipe=recipe, probes=probes)


def induction_learned() -> Figure:
    """Learning curves of 32 seeds: excess loss, and attention of both heads to the right positions."""
    runs = trained(STEPS, MEMBERS)
    steps = [point["step"] for point in runs[0].curve]
    last = runs[0].last
    figure, axes = sheet(2, 10, 4.2)
    for run in runs:
        axes[0].plot(steps, [point["excess"] for point in run.curve], color="C0", alpha=0.3, linewidth=0.9)
    unigram = last["floor.unigram"] - last["floor"]
    axes[0].axhline(unigram, color="C3", linestyle="--", label="predictor that counts single symbols")
    axes[0].axhline(0, color=INK, label="exact optimum")
    axes[0].set(title=f"excess loss, {len(runs)} seeds", ylabel="nats per symbol", ylim=(-0.02, 0.8))
    for name, layer, color, label in (
        ("match", 1, "C1", "layer 2: positions after earlier occurrences"),
        ("back", 0, "C2", "layer 1: the previous position"),
    ):
        curves = np.array([[point[name] for point in run.curve] for run in runs])[:, :, layer]
        axes[1].plot(steps, curves.mean(axis=0), color=color, label=label)
        axes[1].fill_between(steps, curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.2, linewidth=0)
    axes[1].set(title="attention weight on …", ylim=(0, 1))
    for each in axes:
        each.set(
            xlabel="training step",
            xscale="log",
            xlim=(1, STEPS),
            xticks=(1, 4, 16, 64, 256),
            xticklabels=(1, 4, 16, 64, 256),
        )
        each.legend(fontsize=9)
    return figure


def induction_formed() -> Figure:
    """Attention patterns of one seed before, during and after the transition."""
    sandbox = v.sandbox("in_context_markov", **CHAIN)
    example = v.examples(sandbox, seed=0, split="test", start=0, count=1)
    tokens = [sandbox.symbols[token] for token in np.asarray(example.tokens)[0][:14]]
    figure, grid = plt.subplots(2, 3, figsize=(10, 6.8), layout="constrained")
    for column, steps in enumerate((32, 64, STEPS)):
        trace = v.trace(trained(steps, 1)[0].weights, tokens)
        for layer, name in enumerate(("layer 1", "layer 2")):
            weights = trace[f"blocks.{layer}.attn.hook_pattern"][0]
            pattern(grid[layer, column], weights, trace.tokens, f"{name}, after {steps} steps")
    return figure


def landscape() -> Figure:
    """Loss landscape and gradient flow of the tied two-parameter network on two Markov chains."""

    def loss(theta: Any, row: Any) -> Any:
        logit = theta["e"] ** 2 * row.tokens + theta["b"]
        weight = row.weight[:, 1:]
        return (jax.nn.softplus((1 - 2 * row.targets[:, 1:]) * logit) * weight).sum() / weight.sum()

    plane = Slice({"e": 0.0, "b": 0.0}, {"e": 1.0, "b": 0.0}, {"e": 0.0, "b": 1.0})
    x, y = np.linspace(-2.2, 2.2, 61), np.linspace(-3, 2, 61)
    starts = [(-1.8, -2.5), (-1.0, 1.5), (0.2, 1.8), (1.5, 1.0), (1.9, -0.5), (0.6, -2.8)]
    figure, axes = sheet(2, 10, 4.4)
    for each, (p, q) in zip(axes, ((0.2, 0.3), (0.5, 0.8)), strict=True):
        data = strings(Markov(p, q, length=4))
        found = portrait(loss, plane, list(x), list(y), starts, data)
        shown = each.contourf(found.x, found.y, found.loss, levels=24, cmap="viridis")
        figure.colorbar(shown, ax=each, label="loss, nats per bit")
        for path in found.paths:
            each.plot(path[:, 0], path[:, 1], color="white", linewidth=1.2)
            each.plot(*path[-1], "o", color="#c62828")
        kind = "saddle" if p + q < 1 else "minimum"
        each.plot(0, np.log(p / q), "s", color="black", label=f"ignores its input: a {kind}")
        each.set(title=f"p = {p}, q = {q}: p + q {'<' if p + q < 1 else '>'} 1", xlabel="weight e", ylabel="bias b")
        each.legend(fontsize=9, loc="lower center")
    return figure


def linear_regions() -> Figure:
    """Exact linear regions of maxout networks of one, two and three layers on a square."""
    figure, axes = sheet(3, 10, 3.9)
    for depth, each in enumerate(axes, 1):
        found = regions(random_maxout((2, *[4] * depth, 1), 3, seed=3))
        corners = [[[float(c) for c in corner] for corner in cell.corners] for cell in found.cells]
        heights = [sum(float(form[-1]) for form in cell.forms) for cell in found.cells]
        order = np.argsort(np.argsort(heights)) / max(len(heights) - 1, 1)
        faces = colormaps["viridis"](0.15 + 0.8 * order)
        each.add_collection(PolyCollection(corners, facecolors=faces, edgecolors="white", linewidths=0.6))
        each.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
        each.set_title(f"{depth} layer{'s' if depth > 1 else ''}: {found.linear} linear regions")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "induction-net": induction_net,
    "brackets": brackets,
    "residual-stream": residual_stream,
    "gaps": gaps,
    "optimum": optimum,
    "induction-learned": induction_learned,
    "induction-formed": induction_formed,
    "landscape": landscape,
    "linear-regions": linear_regions,
}


if __name__ == "__main__":
    main(sys.argv[1:])
