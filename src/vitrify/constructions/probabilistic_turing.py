r"""Probabilistic Turing machines run as language models over their steps: the network of `turing-any-length`.

In the spirit of Nowak et al. (2024, arXiv 2406.14197), who show that transformers with a chain of thought represent
every distribution of a probabilistic machine at logarithmic precision; the weights are our own derivation. A token is a
step: the symbol written, the move, the next state, and the symbol emitted if there is one. Up to the symbol under the
head of the machine, the network is that of `turing-any-length`. One unit for each state and symbol then selects the
logits, the logarithms of the probabilities of the rules there. A step that is no rule there has the logit $-1000$,
whose exponential is 0 in float64. Without what is not emitted, the strings have the probabilities of the machine.

In exact arithmetic the attention is right for runs of any length; in a format of $p$ significant bits to $T \le
2^{(p-4)/2} - 1$ steps: the logarithm of a position twice, and 4 bits.

For $Q$ states with rules and $G$ symbols of the tape:

| | formula |
| --- | --- |
| layers, heads | 3; 2, 4 and 1 |
| units | 0, 0, $QG$ |
| width | $QG + Q + 2G + 12$ |
| logits | one for each different step |
| steps | those of the machine |
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.any_length_turing import carried, last_written, tested_length
from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.turing import embedded
from vitrify.kit.gadgets.table import table
from vitrify.kit.heads.whole import ROUNDING
from vitrify.kit.network import Builder, Network, Output, Readout, Space
from vitrify.net.spaces import OneHot
from vitrify.spec.computation.probabilistic_turing import ProbabilisticTuringMachine
from vitrify.spec.ngrams.model import BEGIN

LOGIT_OF_ZERO = -1000.0  # its exponential is 0 in float64, also next to the least likely rule
MAX_LOGITS = 1 << 24  # 128 MiB


def sizes(machine: ProbabilisticTuringMachine) -> DeclaredSizes:
    """Return all sizes, none of which depends on a length."""
    states, symbols = len(machine.working), len(machine.symbols)
    return DeclaredSizes.of_layers((2, 4, 1), (0, 0, states * symbols), states * symbols + states + 2 * symbols + 12)


@construction(
    "probabilistic-turing",
    "the distribution of the next step, by one set of weights for all running times",
    sizes,
    default=True,
    certified=("to T", "to T"),
    unproved="numbers that are known only within bounds",
    attention="hard",
)
def probabilistic_turing(
    machine: ProbabilisticTuringMachine, *, attention: Attention, max_length: MaxLength | None = None
) -> Network:
    """Return a transformer that generates the runs of a machine, of any number of steps.

    `max_length` is the length to which it is tested. It reads longer runs, and its weights are the same for all.
    """
    logits = log_probabilities(machine)
    name = f"probabilistic Turing machine of {len(machine.working)} states, step by step, at any length"
    net = Builder(name, (BEGIN, *machine.vocabulary), tested_length(0, max_length), attention, rounding=ROUNDING)
    tokens = embedded(net, machine)
    read = last_written(net, tokens)
    cases = [(state, symbol) for state in machine.working for symbol in machine.symbols]
    patterns = np.array([(machine.working.index(q), machine.symbols.index(s)) for q, s in cases])
    case = Space("state and symbol", OneHot(case_names(machine)))
    selected = table(net, [tokens.state, read], patterns, case, np.eye(len(cases)), rows=case_names(machine))
    return net.network(
        Output("lm", machine.written),
        Readout(((selected, logits),), np.zeros(len(machine.written)), {selected: 0.125}),
        "probabilistic Turing machine at any length",
        facts(machine) | carried(),
        source="in the spirit of Nowak et al. 2024, arXiv 2406.14197",
        reuse=False,
    )


def case_names(machine: ProbabilisticTuringMachine) -> tuple[str, ...]:
    """Return a name for each state and symbol that a rule may read."""
    return tuple(f"{state} reads {symbol}" for state in machine.working for symbol in machine.symbols)


def log_probabilities(machine: ProbabilisticTuringMachine) -> Floats:
    """Return the logarithms of the probabilities of all steps [state and symbol, step]."""
    if len(case_names(machine)) * len(machine.written) > MAX_LOGITS:
        raise BuildRefused(
            f"{len(machine.working):,} states, {len(machine.symbols):,} symbols and {len(machine.written):,} steps are "
            f"too many: a network holds at most {MAX_LOGITS:,} logits, one for each state, symbol and step"
        )
    logits = np.full((len(machine.working), len(machine.symbols), len(machine.written)), LOGIT_OF_ZERO)
    for rule in machine.rules:
        case = machine.working.index(rule.state), machine.symbols.index(rule.read)
        logits[*case, machine.written.index(rule.step)] = np.log(float(rule.probability))
    return logits.reshape(-1, len(machine.written))


def facts(machine: ProbabilisticTuringMachine) -> dict[str, object]:
    """Return the numbers of states and symbols, and of tokens for each symbol that is emitted."""
    tokens = f"{len(machine.written)} for {len(machine.emits)} symbols"
    return {"states": len(machine.working), "symbols": len(machine.symbols), "tokens": tokens}
