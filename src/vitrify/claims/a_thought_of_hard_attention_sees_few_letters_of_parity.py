r"""With too few thoughts, a network with hard attention writes the same ones whatever some letter is, so no PARITY.

Statement: A network with hard attention that computes PARITY of $n$ letters with a chain of thought writes
$\Omega(n)$ symbols. Where one layer of $H$ heads chooses its keys by position, $s$ thoughts read at most $Hs + 1$
letters, so $s \ge (n-1)/H$; that many are enough.
Why: A letter that was not read can be flipped, and nothing that is written changes.
Checked: Networks that compute PARITY if they may write all their thoughts, but get one less: of 1, 2 and 3 layers with
$H = 1$ or 3 heads in the last, $n = 7$ to 13. A circuit of XORs, gate by gate, without its last XOR, and one that reads
one letter twice and another never: both are right on half of the words. Three networks whose last MLP and unembedding
are trained from random weights, until they are right with all their thoughts. For each a sound analysis in exact
rational arithmetic, step by step, finds letters to fix and a letter on which no thought depends. To confirm it, the
network writes after 200 random prompts with these letters. Of networks of one layer, letters that no head reads after a
prompt of zeros are counted and flipped. With all its thoughts each of these networks is right on every word, and the
analysis of two of them finds nothing.
Not checked: All networks: the theorem was not read beyond its abstract; here single networks are analyzed, one length
each, and none has trained attention. A search that finds nothing is no proof. That $O(\log n)$ thoughts leave constant
depth in $\mathrm{TC}^0$, so that they do not decide reachability if $\mathrm{TC}^0 \ne \mathrm{NL}$, is a fact of the
survey, and is not checked here. Nor is the bound $\Omega(\sqrt{n/(Hdp)})$ for following pointers.
Source: Amiri, Huang, Rofin & Hahn 2025, arXiv 2502.02393 [A], the rate for PARITY [S]; networks and search are our own.
Saboteur: What was found for too few thoughts is tried on the network that computes PARITY. Where nothing must be found,
the network gets one thought less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from vitrify.bounds.activations import ExactNet
from vitrify.bounds.thoughts import BITS, BlindChain, blind_chain, parity_in_blocks, positions_read, trained_parity
from vitrify.claims._figures import points, sequence, show
from vitrify.claims._nets import CaseKind, Claim, Domain, Evidence, Method, Quantity, Subject, Subjects, witnessed
from vitrify.constructions.catalogue import build
from vitrify.net.generate import generate
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.computation.circuit import Circuit, Gates

BLOCKS = ((7, 1, 0), (10, 3, 0), (9, 1, 1), (13, 1, 2))  # letters, heads of the last layer, layers before it
TRAINED = ((7, 1, 0), (8, 3, 0), (9, 1, 1))
RIGHT = ((7, 1, 0), (9, 1, 1))  # with all thoughts
LETTERS = 8  # of circuits
XOR_GATES = 3
PROMPTS = 200


def _depth(doublings: int) -> str:
    return f"{doublings + 1} layer{'s' * (doublings > 0)}"


def subjects() -> Subjects:
    for length, heads, doublings in BLOCKS:
        net, enough = parity_in_blocks(length, heads, doublings)
        name = f"{_depth(doublings)}, {heads} head{'s' * (heads > 1)}, {enough - 1} thoughts of {enough}"
        yield _contestant(name, net, length, enough - 1, net, enough)
    for length, heads, doublings in TRAINED:
        net, enough = trained_parity(length, heads, doublings)
        name = f"trained, {_depth(doublings)}, {heads} head{'s' * (heads > 1)}, {enough - 1} thoughts of {enough}"
        yield _contestant(name, net, length, enough - 1, net, enough)
    right, enough = build(xor_of(range(LETTERS)), attention="hard"), XOR_GATES * (LETTERS - 1)
    fewer = enough - XOR_GATES
    yield _contestant(f"circuit, {fewer} thoughts of {enough}", right, LETTERS, fewer, right, enough)
    twice = build(xor_of([0, 1, 2, 3, 4, 4, 6, 7]), attention="hard")
    yield _contestant("circuit that reads a letter twice", twice, LETTERS, enough, right, enough)
    for length, heads, doublings in RIGHT:
        net, enough = parity_in_blocks(length, heads, doublings)
        yield Subject(f"{_depth(doublings)}, all thoughts", weights=net, data=_data(net, length, enough))


def xor_of(letters: Sequence[int]) -> Circuit:
    """Return a circuit of eight inputs that adds some of them modulo 2, one after the other, each by three gates."""
    gates = Gates([f"x{letter}" for letter in range(LETTERS)])
    total = gates.literals[letters[0]]
    for letter in letters[1:]:
        total = gates.difference(total, gates.literals[letter])
    return gates.circuit([("parity", total)])


def _data(net: Weights[Transformer], length: int, thoughts: int) -> dict[str, object]:
    return {"analyzed": net, "length": length, "thoughts": thoughts, "written": thoughts}


def _contestant(
    name: str, net: Weights[Transformer], length: int, thoughts: int, right: Weights[Transformer], enough: int
) -> Subject:
    data = {**_data(net, length, thoughts), "right": right, "enough": enough}
    return Subject(f"{name}, {length} letters", weights=net, data=data)


def check(subject: Subject) -> Evidence:
    length, thoughts = subject.data["length"], subject.data["thoughts"]
    chain = blind_chain(ExactNet(subject.data["analyzed"]), length, thoughts)
    if "right" not in subject.data:
        return _nothing(subject, chain)
    wrong = _wrong(subject.data["right"], length, subject.data["enough"])
    settings = {"thoughts": thoughts}
    proved = Domain("prompts with some letters fixed", Method.PROVED, None, length, length, settings=settings)
    needed = Quantity("words that it gets wrong with all its thoughts", wrong, 0, "=")
    if chain is None:
        return Evidence("fails", 1, (proved,), witness={"actual": "no letter without effect"}).adding(needed)
    prompts = _completions(chain, length)
    answers = [each.symbols[-1] for each in generate(subject.weights, prompts, subject.data["written"])]
    other = next(
        (prompt for prompt, answer in zip(prompts, answers, strict=True) if answer != chain.thoughts[-1]), None
    )
    witness = {"prompt": "".join(other), "actual": "another last thought"} if other else None
    drawn = Domain("prompts with some letters fixed", Method.SAMPLED, len(prompts), length, length, settings=settings)
    evidence = witnessed(witness, len(prompts), proved, drawn, seed=0).adding(
        needed,
        Quantity("letters fixed, by thought", list(chain.fixed_by_step)),
        Quantity("letters on which no thought depends", len(chain.free)),
        Quantity("two prompts of different parity", ["".join(prompt) for prompt in prompts[:2]]),
        Quantity("the last thought after both", chain.thoughts[-1]),
    )
    return evidence.adding(*_flips(subject)) if len(subject.weights.architecture.blocks) == 1 else evidence


def _completions(chain: BlindChain, length: int) -> list[tuple[str, ...]]:
    """Return prompts with the fixed letters: all zeros elsewhere, the same with one letter flipped, and random ones."""
    bits = np.random.default_rng(0).integers(2, size=(PROMPTS, length))
    bits[:2] = 0
    bits[1, min(chain.free)] = 1
    for at, letter in chain.fixed.items():
        bits[:, at] = letter - 1
    return [tuple(BITS[bit] for bit in row) for row in bits.tolist()]


def _flips(subject: Subject) -> tuple[Quantity, ...]:
    """Return how many letters one layer reads after a prompt of zeros, and how many others change what it writes."""
    net, length, thoughts = subject.weights, subject.data["length"], subject.data["written"]
    prompt = ("0",) * length
    unread = sorted(set(range(length)) - positions_read(net, prompt, thoughts))
    flipped = [(*prompt[:at], "1", *prompt[at + 1 :]) for at in unread]
    first, *others = generate(net, [prompt, *flipped], thoughts)
    most = len(net.architecture.blocks[0].heads) * thoughts + 1
    return (
        Quantity("letters read after a prompt of zeros", length - len(unread), most, "<="),
        Quantity("unread letters that change a thought", sum(each.symbols != first.symbols for each in others), 0, "="),
    )


def _wrong(net: Weights[Transformer], length: int, thoughts: int) -> int:
    """Return how many words get a last thought that is not their parity."""
    words = list(product(BITS, repeat=length))
    written = generate(net, words, thoughts)
    return sum(each.symbols[-1] != BITS[each.prompt.count("1") % 2] for each in written)


def _nothing(subject: Subject, chain: BlindChain | None) -> Evidence:
    """Return evidence that nothing is found about a net that computes PARITY."""
    length = subject.data["length"]
    every = Domain(CaseKind.WORDS, Method.EXHAUSTIVE, 2**length, length, length)
    return Evidence("holds", 2**length, (every,)).adding(
        Quantity("letters on which no thought depends", len(chain.free) if chain else 0, 0, "="),
        Quantity("words that it gets wrong", _wrong(subject.weights, length, subject.data["written"]), 0, "="),
    )


def sabotage(subject: Subject) -> Subject:
    if "right" in subject.data:
        return replace(subject.with_data(written=subject.data["enough"]), weights=subject.data["right"])
    fewer = subject.data["thoughts"] - 1
    return subject.with_data(thoughts=fewer, written=fewer)


FIGURE = show(
    sequence("letters fixed, by thought", "thought", "letters fixed so far"),
    points(
        "{} letters",
        "letters on which no thought depends",
        "letters of the word",
        "letters on which no thought depends",
    ),
)
CLAIM = Claim(
    subjects, check, sabotage, id="B11", standing="theorem", uncertified="about what no net can do", figure=FIGURE
)
