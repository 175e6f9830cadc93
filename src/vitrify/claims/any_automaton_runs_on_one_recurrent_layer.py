r"""Any finite automaton runs on one recurrent layer: $|Q||\Sigma|$ ReLU units, or a linear recurrence of $|Q|$ numbers.

Statement: for every automaton there is a simple (Elman) recurrent net with $|Q||\Sigma|$ ReLU units (one more where no
letter leads to the initial state), and a linear recurrence $h_t = h_{t-1} A_{x_t}$ with 0/1 matrices on $|Q|$ numbers,
that give its state after every letter. Both are exact at every length: no size depends on it.
Why: unit $(q, a)$ is 1 iff the last letter was $a$ and the state before it $q$, a conjunction of what the state and the
letter say; and a letter is a map of unit vectors. All numbers are whole, so no error can grow.
Checked: all words to length 8 and every prefix of 1,000 random words of length 120; whether all logits are 0 or 1;
widths and the ones of the transitions against the formulas.
Source: the simulation of automata by threshold units is Minsky's (1967); for recurrent nets as language models Hewitt
et al. 2020, arXiv 2010.07515 [A]; the weights here are our own derivation.
Saboteur: from one state, one letter leads nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.recurrent_automaton import elman, linear, sizes
from vitrify.net.run import batch_logits
from vitrify.net.sparse import nonzeros
from vitrify.net.weights import Ledger
from vitrify.spec.automata import divisibility, random_automaton, symmetric_group
from vitrify.spec.automaton import Automaton

LENGTH, WORDS = 120, 1_000
WORK = 1e9  # multiplications for what is not asked for explicitly


def subjects() -> Iterator[Subject]:
    """S5, random automata, a regular expression, divisibility by 7; both shapes each."""
    machines = {
        "S5 on 5 points": symmetric_group(5),
        "random, 7 states": random_automaton(7, 2, seed=7),
        "random, 5 states, 3 letters": random_automaton(5, 3, seed=8),
        "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
        "divisibility by 7 in binary": divisibility(7),
    }
    for name, machine in machines.items():
        yield Subject(f"{name}, elman", machine, elman(machine, max_length=LENGTH), {"shape": "elman"})
        yield Subject(f"{name}, linear", machine, linear(machine, max_length=LENGTH), {"shape": "linear"})


def check(subject: Subject) -> Evidence:
    """State sequences, logits and sizes."""
    weights, shape = subject.weights, subject.data["shape"]
    net = weights.architecture
    letters, width = len(net.inputs) - 1, sizes(subject.spec)[shape]
    ones = width * letters  # a unit leads to one for each letter; a state goes one way by each letter
    examination = WordExamination(net, subject.spec, max_length=8, samples=WORDS, work=WORK)
    words = examination.domains[-1].words[-1]
    logits = batch_logits(weights, np.pad(words, ((0, 0), (1, 0))))
    declared = {"width": width, "ones in the transition": ones, "logits": [0.0, 1.0], "words of full length": WORDS}
    measured = {
        "width": Ledger.of(weights).d_model,
        "ones in the transition": nonzeros(weights.arrays["blocks.0.rec.W_A"]),
        "logits": np.unique(logits).tolist(),
        "words of full length": len(words),
    }
    return with_sizes(examination.run(weights), declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The first state, or the first unit, leads nowhere by one letter."""
    return zeroed(subject, "blocks.0.rec.W_A", 0 if subject.data["shape"] == "elman" else (1, 0))


CLAIM = Claim(row="R24", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
