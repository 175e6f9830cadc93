r"""Probabilistic automata run on simple recurrent nets: states beside the letters, or letters alone.

In the spirit of Nowak et al. (2024, arXiv 2406.14197) and, for letters alone, of Svete & Cotterell (2023, arXiv
2310.05161): recurrent nets of constant precision represent exactly the deterministic probabilistic
automata, and with a chain of thought all of them. The weights are our own derivation; all that enter the state are 0, 1
and -1.

- `states-aloud-elman` reads and writes letters together with the states that they lead to, like `states-aloud`. The
  token alone determines the state: $h = \mathrm{relu}(U x)$ is its unit vector, that of the beginning at BOS. The
  logits are the logarithms of the probabilities of the next pairs, at BOS averaged over the initial states.
- `letters-elman` reads and writes letters alone, for automata in which a word determines the state. It is the net
  `elman` of its transitions: $h_{(q,y)} \leftarrow \mathrm{relu}(\sum_{\delta(q',y')=q} h_{(q',y')} + [x=y] - 1)$.
  The unit of the last step gives the logarithms of the probabilities in the state that it leads to.

What is impossible has the logit $-1000$, whose exponential is 0 in float64.

| construction | state |
| --- | --- |
| `states-aloud-elman` | number of states of the automaton, and 1 |
| `letters-elman` | number of transitions, 1 more if none leads to the initial state |
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats, Matrix
from vitrify.constructions.catalogue import BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.recurrent_automaton import step_units
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import OneHot
from vitrify.net.weights import Weights
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton
from vitrify.spec.automata.weighted import WeightedAutomaton
from vitrify.spec.ngrams.model import BEGIN, END

LOGIT_OF_ZERO = -1000.0  # its exponential is 0 in float64


def aloud_sizes(automaton: ProbabilisticAutomaton) -> DeclaredSizes:
    """Return all sizes: the width is the state."""
    return DeclaredSizes.of_layers((0,), (0,), len(automaton.states) + 1)


def letters_sizes(automaton: ProbabilisticAutomaton) -> DeclaredSizes:
    """Return all sizes of a deterministic automaton, of those states that it reaches: the width is the state."""
    exact = automaton.weighted
    initial = [q for q, p in enumerate(exact.initial) if p]
    begin = not any(r in initial for _, _, r, _ in exact.moves)
    return DeclaredSizes.of_layers((0,), (0,), len(exact.moves) + begin)


@construction(
    "states-aloud-elman",
    "a simple recurrent net over letters with the states they lead to",
    aloud_sizes,
    certified=("every length", "every length"),
)
def states_aloud(automaton: ProbabilisticAutomaton, *, max_length: MaxLength = 128) -> Weights[Recurrent]:
    """Return a recurrent net that generates the strings of an automaton, with the states beside the letters."""
    begin, moves, end = automaton.matrices
    states = (BEGIN, *automaton.states)
    pairs = [token.split("/") for token in automaton.tokens]
    into = [0, *(states.index(state) for _, state in pairs)]
    columns = [moves[automaton.alphabet.index(y), :, automaton.states.index(r)] for y, r in pairs]
    after = np.stack([*columns, end], axis=1)  # [state, token or end]
    arrays = {
        "blocks.0.rec.W_A": np.zeros((len(states), len(states))),
        "blocks.0.rec.W_B": np.eye(len(states))[into],
        "unembed.W_U": _logarithms(np.vstack([begin @ after, after])),
    }
    return _net(automaton, automaton.tokens, arrays, ("state", OneHot(states)), max_length, "states beside letters")


@construction(
    "letters-elman",
    "deterministic automata: a simple recurrent net over letters alone",
    letters_sizes,
    certified=("every length", "every length"),
)
def letters_alone(automaton: ProbabilisticAutomaton, *, max_length: MaxLength = 128) -> Weights[Recurrent]:
    """Return a recurrent net that generates the strings of a deterministic automaton, letter by letter."""
    exact: WeightedAutomaton = automaton.weighted
    if not exact.is_deterministic:
        raise BuildRefused(
            "a word must determine the state: one initial state, and at most one next state for a state and a letter. "
            "Use --construction states-aloud-elman or states-aloud, which write the states beside the letters"
        )
    (initial,) = (q for q, p in enumerate(exact.initial) if p)
    steps = [(q, exact.alphabet.index(y), r) for q, y, r, _ in exact.moves]
    into, arrays = step_units(steps, initial, len(exact.alphabet))
    after = np.zeros((len(exact.names), len(exact.alphabet) + 1))
    after[:, -1] = [float(p) for p in exact.final]
    for (q, y, _), move in zip(steps, exact.moves, strict=True):
        after[q, y] = float(move[3])
    arrays["unembed.W_U"] = _logarithms(after)[into]
    names = [f"{exact.names[q]} {exact.alphabet[y]}" for q, y, _ in steps] + ["begin"] * (len(into) - len(steps))
    return _net(automaton, exact.alphabet, arrays, ("last step", OneHot(tuple(names))), max_length, "letters alone")


def _logarithms(probabilities: Floats) -> Floats:
    return np.where(probabilities > 0, np.log(np.where(probabilities > 0, probabilities, 1.0)), LOGIT_OF_ZERO)


def _net(
    automaton: ProbabilisticAutomaton,
    tokens: tuple[str, ...],
    arrays: dict[str, Matrix],
    state: tuple[str, OneHot],
    max_length: int,
    variant: str,
) -> Weights[Recurrent]:
    """Return a net of one cell whose state gives the logits of tokens and the end."""
    name, kind = state
    net = Recurrent(
        inputs=(BEGIN, *tokens),
        output=Output("lm", (*tokens, END)),
        max_length=max_length,
        d_embed=len(tokens) + 1,
        cell=Cell("relu", kind.size),
        name=f"probabilistic automaton of {len(automaton.states)} states, {variant}",
    )
    labels = Labels(
        (
            SpaceLabel("token", OneHot(net.inputs), tuple(range(net.d_embed)), 0, 0),
            SpaceLabel(name, kind, tuple(range(kind.size)), 1, 1),
        )
    )
    about = {
        "construction": f"probabilistic automaton, {variant}",
        "states": len(automaton.states),
        "source": "in the spirit of Nowak et al. 2024, arXiv 2406.14197",
    }
    fixed = {"embed.W_E": np.eye(net.d_embed), "unembed.b_U": np.zeros(len(net.output.symbols))}
    return Weights(net, {**fixed, **arrays}, labels, about)
