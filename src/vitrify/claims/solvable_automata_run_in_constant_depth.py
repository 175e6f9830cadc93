r"""A solvable automaton runs on a number of attention layers that does not depend on the length of its words.

Statement: If all groups in the holonomy decomposition of an automaton are solvable, then for every length $T$ there is
a transformer that gives the state after every letter. It has one head in each attention layer, and for each level of
the decomposition as many layers as the derived length of its group, and one more if letters reset the level: a number
that does not depend on $T$. $S_5$ is not solvable, so it is excluded.
Why: Each level of the cascade only permutes or resets its coordinate. The last reset is found by a look-up;
permutations of a solvable group are exact counts, one abelian factor after the other.
Checked: Seven automata ($S_3$, $S_4$, a corridor, a regular expression, divisibility by 12, a random one, a product) at
$T = 120$, each with softmax, sparsemax or hard attention: all words to length 6, words that repeat, alternate and
wander, every prefix of random words of length 120. Attention layers and heads are compared with the formula, also at $T
= 24$. The builder refuses $S_5$, which is built in log depth and checked too.
Not checked: $T > 120$; units and the largest weight grow with $T$. That no constant-depth network computes $S_5$ is
conditional (TC⁰ ≠ NC¹); the refusal here only says that this construction does not apply.
Source: Liu et al. 2023, arXiv 2210.10749, theorem 2 [S]; Krohn & Rhodes 1965 [S]; the weights are our own derivation.
Saboteur: The values of the first layer are zero.
"""

from __future__ import annotations

from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, check_net, in_turn, refused, zeroing
from vitrify.constructions.catalogue import build
from vitrify.constructions.log_depth import layers_for
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import divisibility, product, random_automaton, symmetric_group
from vitrify.spec.automata.families import gridworld as corridor

LENGTH, SHORT = 120, 24
S5 = "S5, refused; in log depth"


def subjects() -> Subjects:
    machines = {
        "S3": symmetric_group(3),
        "S4": symmetric_group(4),
        "corridor of 5": corridor(5),
        "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
        "divisibility by 12 in binary": divisibility(12),
        "random, 6 states": random_automaton(6, 2, seed=4),
        "corridor of 3 × S3": product(corridor(3), symmetric_group(3)),
    }
    yield from in_turn(machines, "cascade", max_length=LENGTH)
    yield Subject(S5, symmetric_group(5), build(symmetric_group(5), "log-depth", max_length=LENGTH))


def check(subject: Subject) -> Evidence:
    if subject.name == S5:
        layers, no = layers_for(LENGTH), "a cascade is refused"
        declared = {"attention_layers": layers, "heads": layers, no: True}
        return check_net(subject, declared, {no: refused(lambda: build(subject.spec, "cascade"))}, max_length=6)
    shorter, long = f"attention_layers at length {SHORT}", subject.data["sizes"].exact["attention_layers"]
    short = build(subject.spec, "cascade", max_length=SHORT).sizes.attention_layers
    return check_net(subject, {shorter: long}, {shorter: short}, max_length=6)


sabotage = zeroing("blocks.0.attn.W_V")  # the first layer fetches nothing
CLAIM = Claim(subjects, check, sabotage, id="R15", standing="theorem", certified="sampled", budget_seconds=60)
