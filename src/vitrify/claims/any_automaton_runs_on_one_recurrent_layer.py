r"""Any finite automaton runs on one recurrent layer: $|Q||\Sigma|$ ReLU units, or a linear recurrence of $|Q|$ numbers.

Statement: For every automaton there is (a) an Elman network with $\lvert Q\rvert\lvert\Sigma\rvert$ ReLU units (one
more where no letter leads to the initial state) and (b) a linear recurrence $h_t = h_{t-1} A_{x_t}$ with 0/1 matrices
on $\lvert Q\rvert$ numbers that give its state after every letter of every word. No size depends on the length.
Why: Unit $(q, a)$ is 1 iff the last letter was $a$ and the state before it was $q$. In the linear form a letter maps
unit vectors to unit vectors. All numbers are integers, so no error can grow.
Checked: Five automata ($S_5$, random ones of 7 and 5 states, a regular expression, divisibility by 7) in both forms:
all words to length 8 and every prefix of 1,000 random words of length 120. All logits are 0 or 1; widths and the number
of ones in the transitions equal the formulas.
Not checked: Words longer than 120 (by the integrality argument nothing changes), and the smaller widths known for
special automata.
Source: Minsky 1967 for threshold units; Hewitt et al. 2020, arXiv 2010.07515 [A] for recurrent language models; the
weights are our own derivation.
Saboteur: One transition by one letter is removed.
"""

from __future__ import annotations

import numpy as np

from vitrify.certification.checks.words import WordCheck
from vitrify.claims._figures import bars, show
from vitrify.claims._nets import Claim, Evidence, Quantity, Subject, Subjects, zeroed
from vitrify.constructions.recurrent_automaton import elman, elman_sizes, linear, sizes
from vitrify.net.inference import batch_logits
from vitrify.net.sparse import nonzeros
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import divisibility, random_automaton, symmetric_group

LENGTH, WORDS = 120, 1_000
WORK = 1e9  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
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
    weights, net = subject.weights, subject.weights.architecture
    width = (elman_sizes if subject.data["shape"] == "elman" else sizes)(subject.spec).exact["d_model"]
    assert isinstance(width, int)
    ones = width * (len(net.inputs) - 1)  # a unit leads to one for each letter; a state goes one way by each letter
    check = WordCheck(net, subject.spec, max_length=8, samples=WORDS, work=WORK)
    words = check.batches[-1].words[-1]
    logits = batch_logits(weights, np.pad(words, ((0, 0), (1, 0))))
    return check.run(weights).adding(
        Quantity("width", net.width, width, "="),
        Quantity("ones in the transition", nonzeros(weights.arrays["blocks.0.rec.W_A"]), ones, "="),
        Quantity("logits", np.unique(logits).tolist(), [0.0, 1.0], "="),
        Quantity("words of full length", len(words), WORDS, "="),
    )


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, "blocks.0.rec.W_A", 0 if subject.data["shape"] == "elman" else (1, 0))


FIGURE = show(bars({"width": "width", "ones in the transition": "ones in the transition"}, "count"))
CLAIM = Claim(subjects, check, sabotage, id="R24", standing="theorem", certified="proved", figure=FIGURE)
