"""Checks that claims about language models with a chain of thought share: strings without thoughts, random runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits, batch_of, log_probabilities, trace
from vitrify.net.recurrent import Recurrent
from vitrify.net.weights import Weights
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton
from vitrify.spec.computation.probabilistic_turing import Configuration, ProbabilisticTuringMachine
from vitrify.spec.kinds import Spec

String = tuple[str, ...]
MAX_RUNS = 1 << 16  # of one length
TOGETHER = 1 << 12  # that are run at once: what fits a cache
LEAST = 1e-30  # runs of lower probability are left out


def string_masses(
    weights: Weights[SequenceArchitecture], emitted: Mapping[str, str], steps: int
) -> tuple[dict[String, float], float]:
    """Return the probabilities of the strings that a net generates in some steps, and of all runs that go on.

    `emitted` maps tokens to symbols; those that it lacks emit nothing. A run ends with a token that the net does not
    read.
    """
    net = weights.architecture
    ids = np.array([net.input_ids.get(token, 0) for token in net.output.symbols])
    reads, emits = ids > 0, [emitted.get(token) for token in net.output.symbols]
    ended: dict[String, float] = defaultdict(float)
    words, masses = np.zeros((1, 0), dtype=np.int64), np.ones(1)
    strings: list[String] = [()]

    def longer(row: int, column: int) -> String:
        symbol = emits[column]
        return (*strings[row], symbol) if symbol else strings[row]

    for step in range(1, steps + 1):
        tokens, _ = batch_of(net, words.tolist())
        parts = [tokens[at : at + TOGETHER] for at in range(0, len(tokens), TOGETHER)]
        logits = np.concatenate([batch_logits(weights, part)[:, -1] for part in parts])
        shares = masses[:, None] * np.exp(log_probabilities(net.output, logits))
        for row, column in np.argwhere((shares > LEAST) & ~reads).tolist():
            ended[longer(row, column)] += float(shares[row, column])
        rows, columns = np.nonzero((shares > LEAST) & reads)
        masses = shares[rows, columns]
        if step == steps or not len(rows):
            break
        if len(rows) > MAX_RUNS:
            raise ValueError(f"more than {MAX_RUNS} runs: ask for fewer steps")
        strings = [longer(row, column) for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]
        words = np.hstack([words[rows], ids[columns][:, None]])
    return dict(ended), float(masses.sum())


def largest_difference(one: Mapping[String, float], other: Mapping[String, float]) -> tuple[float, String]:
    """Return the largest difference of the masses of a string, and that string."""
    strings = one.keys() | other.keys()
    return max(((abs(one.get(s, 0.0) - other.get(s, 0.0)), s) for s in strings), default=(0.0, ()))


def random_runs(spec: Spec, net: SequenceArchitecture, count: int, longest: int, seed: int) -> list[list[int]]:
    """Return random runs of a spec as input ids, cut at a length."""
    meaning = spec.meaning(net.output.kind, net.inputs[1:])
    assert meaning is not None
    assert meaning.language is not None
    rng, runs = np.random.default_rng(seed), []
    for _ in range(count):
        run = iter(meaning.language.draw(rng))
        runs.append([net.input_ids[token] for token, _ in zip(run, range(longest), strict=False)])
    return runs


def random_walks(
    automaton: ProbabilisticAutomaton, net: SequenceArchitecture, count: int, letters: int, seed: int
) -> list[list[int]]:
    """Return random walks of an automaton that do not end, as input ids; a state without a transition cuts them short.

    They are written as the network reads them: letters alone, with the states after them, or in turn with states.
    """
    rng, runs = np.random.default_rng(seed), list[list[int]]()
    moves = {q: [(y, r) for other, y, r, p in automaton.transitions if other == q and p] for q in automaton.states}
    begins, alone = [q for q, p in automaton.initial if p], set(net.inputs[1:]) == set(automaton.alphabet)
    in_turn = f"/{begins[0]}" in net.input_ids
    for _ in range(count):
        state = begins[rng.integers(len(begins))]
        tokens = [f"/{state}"] if in_turn else []
        for _ in range(letters):
            if not moves[state]:
                break
            letter, state = moves[state][rng.integers(len(moves[state]))]
            tokens += [letter] if alone else [letter, f"/{state}"] if in_turn else [f"{letter}/{state}"]
        runs.append([net.input_ids[token] for token in tokens])
    return runs


def error_on_runs(spec: Spec, weights: Weights[SequenceArchitecture], runs: list[list[int]]) -> float:
    """Return the largest error of a distribution after the prefixes of some runs."""
    net, by_length = weights.architecture, defaultdict[int, list[list[int]]](list)
    oracle = oracle_for(spec, net)
    for run in runs:
        by_length[len(run)].append(run)
    worst = 0.0
    for same in by_length.values():
        logits = batch_logits(weights, batch_of(net, same)[0])[:, net.pads - 1 :]
        worst = max(worst, float(oracle.errors(np.array(same, dtype=np.int64), logits).max(initial=0.0)))
    return worst


def stacks_on_runs(
    machine: ProbabilisticTuringMachine, weights: Weights[Recurrent], runs: list[list[int]], names: Sequence[str]
) -> tuple[int, float]:
    """Return how many of the numbers that hold a tape are wrong on some runs, and the most bits for a symbol.

    `names` are how the names of the spaces of both stacks begin. A number must be the exact fraction of its stack.
    """
    digit = {symbol: index for index, symbol in enumerate(machine.symbols)}
    spaces = [[label.name for label in weights.labels.spaces if label.name.startswith(name)] for name in names]
    base, wrong, bits = int(str(weights.about["base"])), 0, 0.0
    for run in runs:
        steps, at = [weights.architecture.inputs[token] for token in run], Configuration(machine.start)
        seen = trace(weights, steps)
        numbers = [np.sum([seen.space(name)[1:, 0] for name in some], axis=0) for some in spaces]
        for position, step in enumerate(steps):
            at = machine.after(at, next(rule for rule in machine.choices(at) if rule.step == step))
            for number, stack in zip(numbers, (at.right, at.left), strict=True):
                code = sum((Fraction(digit[s], base**i) for i, s in enumerate(stack, start=1)), Fraction(0))
                wrong += Fraction(float(number[position])) != code
                bits = max(bits, (code.denominator.bit_length() - 1) / max(1, len(stack)))
    return wrong, bits
