r"""A Boolean formula of depth $D$ is a product of $4^D$ permutations, which two layers in a loop take $2D$ times.

Statement: For every formula of depth $D$ in AND and OR there is a word of at most $4^D$ permutations of five points,
each of them chosen by the value of one variable, whose product is a fixed 5-cycle if the formula is true and the
identity if it is false. (a) Two transformer layers with two heads, 70 units and width 26, applied $2D$ times (at least
once) to the bits and $4^D$ padding tokens, give the value of the formula; no weight or temperature but the table of
positions depends on the formula. (b) A linear recurrence of five numbers follows the word in one pass.
Why: Commutators of 5-cycles are AND: $\sigma\tau\sigma^{-1}\tau^{-1}$ is the identity as soon as $\sigma$ or $\tau$ is
missing. $S_5$ is not solvable, so that such commutators can be nested to any depth.
Checked: AND, OR with negations, XOR of two and of four variables, a choice, and the majority of three: all inputs, with
softmax, sparsemax and hard attention in turn, and 60 random formulas of depth 3 over at most five variables, all
inputs: the words against the formulas, the nets of (a), and those of (b) on the chosen permutations. XOR of two
variables takes 16 permutations. Stored blocks, rounds, tokens and sizes are compared with the formulas, and arrays
other than positions with those of another formula. The construction of constant depth (`cascade`) refuses the
permutations of every formula, which generate $A_5$. Both links of the named nets are proved: all their inputs were run.
Not checked: $D > 4$. The table of positions holds the program, so the net is not uniform. That constant depth is not
enough for all such formulas is conditional on $\mathrm{TC}^0 \ne \mathrm{NC}^1$; the refusal only says that one
construction does not apply.
Source: Barrington 1989 [K]; in the spirit of Merrill & Sabharwal 2025, arXiv 2503.03961 [A]; the weights are our own
derivation.
Saboteur: The layers are applied one time fewer, so that half of the permutations are missing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product as every

from vitrify.certification.checking import with_proof
from vitrify.certification.checks.words import WordCheck
from vitrify.claims._figures import bars, points, show
from vitrify.claims._nets import (
    Claim,
    Domain,
    Evidence,
    Method,
    Subject,
    Subjects,
    Weights,
    check_net,
    in_turn,
    refused,
    witnessed,
)
from vitrify.claims.one_layer_in_a_loop_decides_connectivity import sabotage
from vitrify.constructions.catalogue import build
from vitrify.net.inference import encode, logits
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import permutation_group
from vitrify.spec.automata.groups import Permutation
from vitrify.spec.computation.barrington import CYCLE, IDENTITY, chosen, product, program
from vitrify.spec.tasks.formula_value import BITS, PAD, FormulaValue, holds, random_formula

XOR = "({a} & !{b}) | (!{a} & {b})".format
FORMULAS = {
    "AND": "a & b",
    "OR": "!a | b",
    "XOR of two": XOR(a="a", b="b"),
    "choice": "(a & b) | (!a & c)",
    "majority of three": "(a & b) | (c & (a | b))",
    "XOR of four": XOR(a=f"({XOR(a='a', b='b')})", b=f"({XOR(a='c', b='d')})"),
}
RANDOM, VARIABLES, DEPTH = 10, 5, 3  # random formulas for each named one
SAMPLES, WORK = 16, 1e7  # random words, and multiplications spent on words beyond those listed
SAME = "weights equal those of the formula a, but for positions"
POSITIONS = "pos_embed.W_pos"


def subjects() -> Subjects:
    yield from in_turn({name: FormulaValue(text) for name, text in FORMULAS.items()}, "barrington")


def check(subject: Subject) -> Evidence:
    net, task = subject.weights.architecture, subject.spec
    attention, word = net.blocks[0].heads[0].attention, program(task.node)
    other = build(FormulaValue("a"), "barrington", attention=attention)
    declared: dict[str, object] = {
        "blocks stored": 2,
        "rounds": max(1, 2 * task.depth),
        "tokens": len(task.variables) + 4**task.depth,
        "at most 4^D permutations": True,
        "a cascade is refused": True,
        SAME: True,
    }
    measured: dict[str, object] = {
        "blocks stored": len(net.blocks),
        "rounds": net.loops,
        "tokens": net.max_length,
        "at most 4^D permutations": len(word) <= 4**task.depth,
        "a cascade is refused": refused(lambda: build(_machine(task), "cascade", max_length=task.length)),
        SAME: _alike(subject.weights, other),
        "permutations": len(word),
    }
    if subject.name.startswith("XOR of two"):
        declared["permutations"] = 16
    evidence = check_net(subject, declared, measured, max_length=task.length, samples=SAMPLES, work=WORK)
    if evidence.verdict != "holds":
        return evidence
    evidence = with_proof(evidence, subject.weights, WordCheck(net, task))
    evidence = replace(evidence, checked=(subject.weights, task, evidence))
    first = RANDOM * list(FORMULAS).index(subject.name.partition(",")[0])
    drawn = [random_formula(seed, VARIABLES, DEPTH) for seed in range(first, first + RANDOM)]
    wrong = {each.formula: _wrong(each, build(each, "barrington", attention=attention)) for each in (task, *drawn)}
    inputs = sum(2 ** len(each.variables) for each in (task, *drawn))
    witness = next(({"formula": formula, "wrong": one} for formula, one in wrong.items() if one), None)
    domain = Domain("inputs of all formulas", Method.EXHAUSTIVE, inputs)
    more = witnessed(witness, inputs, domain)
    return replace(
        evidence,
        verdict=more.verdict,
        cases=evidence.cases + inputs,
        domains=(*evidence.domains, domain),
        witness=more.witness,
    )


def _wrong(task: FormulaValue, weights: Weights) -> str | None:
    """Return what is wrong for some input: the word of permutations, the transformer, or the recurrence."""
    instructions, machine = program(task.node), _machine(task)
    recurrence = build(machine, "linear-recurrence", max_length=len(instructions))
    if recurrence.sizes.d_model != len(IDENTITY):
        return "the recurrence has not five numbers"
    words, letters, answers = [], [], []
    for bits in every(BITS, repeat=len(task.variables)):
        values = {name: bit == "1" for name, bit in zip(task.variables, bits, strict=True)}
        permutations = chosen(instructions, values)
        answers.append(holds(task.node, values))
        if product(permutations) != (CYCLE if answers[-1] else IDENTITY):
            return f"the product of permutations for {' '.join(bits)}"
        words.append((*bits, *PAD * task.padding))
        letters.append([_letter(each) for each in permutations])
    for what, net, inputs in (("transformer", weights, words), ("recurrence", recurrence, letters)):
        symbols = net.architecture.output.symbols  # where a 5-cycle takes point 0: to 1
        rows = logits(net, [encode(net.architecture, word) for word in inputs])
        for word, row, answer in zip(inputs, rows, answers, strict=True):
            if (symbols[row[-1].argmax()] == "1") != answer:
                return f"the {what} after {' '.join(word)}"
    return None


def _letter(permutation: Permutation) -> str:
    return "".join(map(str, permutation))


def _machine(task: FormulaValue) -> Automaton:
    """Return the automaton of the five points, whose letters are the permutations that a program may choose."""
    letters = sorted({permutation for _, *both in program(task.node) for permutation in both})
    return permutation_group({_letter(each): each for each in letters})


def _alike(one: Weights, other: Weights) -> bool:
    """Return whether two nets have the same arrays, but for positions."""
    return all(
        array.tobytes() == other.arrays[name].tobytes() for name, array in one.arrays.items() if name != POSITIONS
    )


FIGURE = show(
    points("rounds", "tokens", "rounds, 2D", "tokens", "y", laws={"4^D": lambda rounds: 2**rounds}),
    bars(("rounds",), "rounds"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R44", standing="theorem", certified="proved", budget_seconds=20, figure=FIGURE
)
