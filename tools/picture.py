"""Draw the picture of the README: a regular expression, the transformer compiled from it, and its certificate.

    make picture

Everything in it is computed: attention patterns, decoded residual stream, verdict and counterexample.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

import vitrify as v
from vitrify.certification.evidence import Evidence
from vitrify.net.trace import Trace
from vitrify.spec.automata.automaton import Automaton

OUT = Path(__file__).parents[1] / "docs" / "pictures" / "overview.png"
REGEX, WORD, MAX_LENGTH = "(ab|ba)*", "abbaab", 8
INK, SOFT, BLUE, GREEN, RED = "#1d2733", "#8a97a6", "#1f6feb", "#1a7f37", "#c62828"
STATE_COLORS = ("#cfe8d5", "#d6e4fb", "#fbe3c4", "#e5e7eb")
CENTERS = {0: (0.5, 0.72), 1: (0.18, 0.40), 2: (0.82, 0.40), 3: (0.5, 0.12)}  # of the states in the diagram
RADIUS = 0.085


def main() -> None:
    spec = v.Automaton.from_regex(REGEX)
    net = v.build(spec, max_length=MAX_LENGTH)
    trace = v.trace(net, WORD)
    evidence = v.certify(net, spec, max_length=MAX_LENGTH)
    mutant = next(iter(v.mutants(net, 1, 0)))
    mpl.rcParams.update({"font.family": "DejaVu Sans", "font.size": 9, "text.color": INK})
    figure = plt.figure(figsize=(12, 4.4), dpi=150)
    grid = figure.add_gridspec(
        1, 4, width_ratios=[0.8, 0.62, 1.75, 1.2], left=0.01, right=0.995, top=0.84, bottom=0.04, wspace=0.12
    )
    draw_automaton(figure.add_subplot(grid[0]), spec)
    patterns = grid[1].subgridspec(3, 1, hspace=0.42)
    for block in range(3):
        draw_attention(figure.add_subplot(patterns[block]), trace, block)
    draw_stream(figure.add_subplot(grid[2]), trace, spec)
    draw_certificate(figure.add_subplot(grid[3]), evidence, v.certify(mutant.weights, spec, max_length=MAX_LENGTH))
    titles = [
        ("1  Specification", f"regular expression {REGEX}"),
        ("2  Transformer", "its attention patterns"),
        ("3  Residual stream, decoded", f"what each layer holds while it reads {WORD}"),
        ("4  Certificate", "network = automaton, or a counterexample"),
    ]
    for column, (title, note) in enumerate(titles):
        left = grid[column].get_position(figure).x0
        figure.text(left, 0.945, title, fontsize=11.5, fontweight="bold")
        figure.text(left, 0.895, note, fontsize=8.5, color=SOFT)
    OUT.parent.mkdir(exist_ok=True)
    figure.savefig(OUT, metadata={"Software": None})
    print(OUT)


def draw_automaton(axes: Axes, spec: Automaton) -> None:
    """Draw states as circles and transitions as labelled arrows."""
    axes.set(xlim=(0, 1), ylim=(0, 0.95), aspect="equal")
    axes.axis("off")
    arrows: dict[tuple[int, int], list[str]] = {}
    for state, targets in enumerate(spec.transitions):
        for letter, target in zip(spec.alphabet, targets, strict=True):
            arrows.setdefault((state, target), []).append(letter)
    for (state, target), letters in arrows.items():
        start, end = np.array(CENTERS[state]), np.array(CENTERS[target])
        label = ", ".join(letters)
        if state == target:
            axes.text(start[0] + 0.16, start[1] - 0.02, f"↺ {label}", color=SOFT)
            continue
        style = "arc3,rad=0.18"
        arrow = FancyArrowPatch(
            tuple(start), tuple(end), connectionstyle=style, arrowstyle="-|>", mutation_scale=11, shrinkA=16, shrinkB=16
        )
        arrow.set(color=SOFT if target == 3 else INK, linewidth=1.1)
        axes.add_patch(arrow)
        along = end - start
        middle = (start + end) / 2 + 0.14 * np.array([along[1], -along[0]])
        axes.text(middle[0], middle[1], label, ha="center", va="center", color=SOFT if target == 3 else INK)
    for state, center in CENTERS.items():
        axes.add_patch(Circle(center, RADIUS, facecolor=STATE_COLORS[state], edgecolor=INK, linewidth=1.1, zorder=3))
        if state in spec.accepting:
            axes.add_patch(Circle(center, RADIUS * 0.8, fill=False, edgecolor=INK, linewidth=0.8, zorder=4))
        axes.text(*center, spec.states[state], ha="center", va="center", zorder=5)
    x, y = CENTERS[spec.initial]
    axes.annotate("", (x, y + RADIUS), (x, y + RADIUS + 0.12), arrowprops={"arrowstyle": "-|>", "color": INK})


def draw_attention(axes: Axes, trace: Trace, block: int) -> None:
    """Draw the attention pattern of one layer: query positions down, key positions across."""
    pattern = trace[f"blocks.{block}.attn.hook_pattern"][0]
    axes.imshow(pattern, cmap="Blues", vmin=0, vmax=1)
    tokens = ["·", *WORD]
    axes.set_xticks(range(len(tokens)), tokens, fontsize=6.5)
    axes.set_yticks(range(len(tokens)), tokens, fontsize=6.5)
    axes.tick_params(length=0, pad=1)
    axes.set_ylabel(f"layer {block + 1}\n{2**block} back", fontsize=8)
    for spine in axes.spines.values():
        spine.set_color(SOFT)


def draw_stream(axes: Axes, trace: Trace, spec: Automaton) -> None:
    """Draw the decoded spaces of the residual stream: a row for each, a column for each position."""
    tokens = ["start", *WORD]
    axes.set(xlim=(-2.1, len(tokens)), ylim=(5.1, -0.75))
    axes.axis("off")
    names = ["map 0", "map 1", "map 2", "map 3"]
    captions = ["after embedding:\nmap of 1 letter", "after layer 1:\nof the last 2", "after layer 2:\nof the last 4"]
    for column, token in enumerate(tokens):
        axes.text(column + 0.46, -0.35, token, ha="center", va="center", fontsize=10 if column else 8, color=BLUE)
    for row, name in enumerate(names):
        caption = captions[row] if row < 3 else "after layer 3:\nthe state"
        axes.text(-2.1, row * 1.22 + 0.5, caption, va="center", fontsize=8, color=INK)
        for column, content in enumerate(trace.read(name)):
            x, y = column + 0.04, row * 1.22 + 0.08
            states = (
                [int(spec.states.index(str(one))) for one in content] if isinstance(content, list) else [int(content)]
            )
            height = 0.84 / len(states)
            for number, state in enumerate(states):
                corner = (x, y + number * height)
                axes.add_patch(
                    Rectangle(corner, 0.84, height, facecolor=STATE_COLORS[state], edgecolor="white", linewidth=0.6)
                )
                text = f"{number}→{state}" if len(states) > 1 else str(state)
                size = 5.6 if len(states) > 1 else 12
                axes.text(x + 0.42, y + (number + 0.5) * height, text, ha="center", va="center", fontsize=size)


def draw_certificate(axes: Axes, right: Evidence, wrong: Evidence) -> None:
    """Write the verdict on the network, and on one whose weights were changed."""
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    words, witness = right.domains[0], wrong.witness or {}
    lines = [
        (0.95, f"✓ {right.verdict}", GREEN, 12),
        (0.87, f"{words.method.value}: all {words.count} words of length 0–{words.longest},", INK, 8.5),
        (0.81, "the right state after every letter", INK, 8.5),
        (0.60, f"✗ {wrong.verdict}", RED, 12),
        (0.52, "the same network, one weight changed;", INK, 8.5),
        (0.46, f"counterexample: {''.join(witness['word'])}", INK, 8.5),
        (0.40, f"state {witness['found']}, must be {witness['expected']}", INK, 8.5),
    ]
    for y, text, color, size in lines:
        axes.text(0, y, text, color=color, fontsize=size, va="center", fontweight="bold" if size > 9 else "normal")


if __name__ == "__main__":
    main()
