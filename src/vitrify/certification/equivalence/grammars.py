r"""Lemma: a network whose logic program follows the rules of a grammar outputs exactly the words that may come next.

The program is that of `clauses.py`: a dimension is positive at $t$ iff one of its rows holds. The facts and what
follows from them are those of `grammar_facts.py`. The lemma has two halves, each by induction.

**No word too many.** Every dimension $d$ gets a *meaning* at every position: facts that hold wherever it is positive.
A word is what its embedding says. A row means all that follows from the meanings of its dimensions together; if
these contradict each other, it never holds. A dimension means what all its rows mean. So the meanings are true by
induction over the blocks. Checked: each dimension of the logit of $w$ means at every $t$ that $w$ may come next.

**No word too few.** If $w$ may come next, there is a partial derivation: a path of nodes from the root to $w$ whose
elder siblings all derive words that have been read. For parts of such derivations, the lemma collects *sets of
dimensions*; wherever the part occurs, all dimensions of one of its sets are positive:

- $X$ derives $w_{i+1} \dots w_j$: for a word, the dimensions of its embedding; for a rule, what follows at $j$ from the
  sets of the children, each at its end. Of these, only dimensions that mean $X$ from $i$ to $j$ may be stored, and two
  sets may be replaced by what they have in common: to forget that a dimension is positive is safe.
- For the path there are three templates, of which one must succeed:

| template | part | dimensions at | from |
| --- | --- | --- | --- |
| left to right | the rest $\beta$ of a rule may follow at $i$ | $i$ | what was open before $X$, and $X$ |
| top down | $X$ may begin at $k$ and hold the next word | $t$ | the parent of $X$ at $t$, its elder siblings |
| bottom up | $w$ may follow in $A$, which began at $i$ | $t$ | the child that holds it, its elder siblings |

Checked: where the path is complete, one dimension of the logit of $w$ is positive. Before the first word, the answer is
that of the pads, which is compared with the grammar's.

Where heads read fixed distances and units no positions (`_uniform`), the same holds wherever a part ends: one
position, at which pads count for nothing, stands for all others but the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.clauses import ClauseProgram, Node, Truth
from vitrify.certification.equivalence.grammar_facts import THE_END, Facts, GrammarFacts, Seq, bits, either, together
from vitrify.certification.equivalence.product import first_wrong
from vitrify.certification.margins.values import Undecided
from vitrify.errors import SpecError
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.rules import Symbol

Policy = Literal["least", "parts", "all"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
Dims = frozenset[int]
Chain = tuple[tuple[int, Dims], ...]  # positions, with dimensions that are positive there
MAX_VARIANTS = 8  # sets of one part; more are replaced by what two of them have in common
MAX_SETS = 200_000  # of dimensions that are asked for what follows from them
ANYWHERE = -1  # a position that stands for all but the first, in a uniform program


@lemma(Grammar)
def chart_of_a_grammar(case: SpecCase) -> SpecProof:
    """Prove that the rows of a network are the rules of its grammar, in both directions."""
    if case.net.output.kind != "next":
        raise Undecided("the lemma is about sets of next words, not about probabilities")
    program = ClauseProgram.of(case.ideal)
    try:
        rules = {ahead: GrammarFacts(case.spec, ahead=ahead) for ahead in (False, True)}
    except SpecError:
        raise Undecided("the grammar is recursive") from None
    longest = min(program.longest, rules[False].longest)
    if first_wrong(case.oracle, [()], case.ideal.first_logits[None]) is not None:
        raise Undecided("the answer before the first word is wrong")
    meanings: dict[bool, Meanings] = {}
    reasons: dict[str, None] = {}
    for policy, (name, template) in product(POLICIES, TEMPLATES.items()):
        ahead = name == "bottom up"
        if ahead not in meanings:
            meanings[ahead] = Meanings(program, rules[ahead], longest)
        uniform = policy != "all" and name == "left to right" and _uniform(program)
        parts = Parts(meanings[ahead], policy, uniform=uniform)
        try:
            meanings[ahead].check()
            template(parts)
        except Undecided as stop:
            reasons.setdefault(f"{name}, {stop}")
            continue
        checked = {"rows with their meanings": meanings[ahead].rows, f"parts of derivations, {name}": len(parts.known)}
        return SpecProof("rows of units are rules of the grammar", program.longest, checked)
    raise Undecided("; ".join(list(reasons)[: len(TEMPLATES)]))


class Meanings:
    """The meaning of every node of a program; None of a node that is never positive."""

    def __init__(self, program: ClauseProgram, rules: GrammarFacts, longest: int) -> None:
        self.program, self.rules, self.longest, self.rows = program, rules, longest, 0
        self.of: dict[Node, Facts | None] = {}
        for dim, tokens in program.words.items():
            mask = sum(1 << (token - 1) for token in tokens)
            for at in range(1, longest + 1):
                self.of[dim, at] = rules.closed({("W", at): mask}, at)
        for dim in sorted(program.rows, key=program.born.__getitem__):
            for at in range(1, longest + 1):
                self.of[dim, at] = self._of_rows(dim, at)
        self._wrong: tuple[int, Symbol] | None = self._first_wrong()

    def _of_rows(self, dim: int, at: int) -> Facts | None:
        meaning: Facts | None = None
        for row in self.program.rows[dim]:
            nodes = {self.program.node(part, at) for part in row}
            parts = [self.of[node] for node in nodes if not isinstance(node, bool)]
            if False not in nodes and None not in parts:
                self.rows += 1
                facts = together(part for part in parts if part is not None)
                meaning = either(meaning, self.rules.closed(facts, at))
        return meaning

    def _first_wrong(self) -> tuple[int, Symbol] | None:
        """Return a number of words and a word for which a logit does not mean that the word may come next, or None."""
        reads: dict[int, int] = {}
        for symbol, dims in enumerate(self.program.said):
            for dim in dims:
                reads[dim] = reads.get(dim, 0) | 1 << symbol
        for dim, words in reads.items():
            for at in range(1, self.longest + 1):
                node = self.program.node(dim, at)
                facts = {} if node is True else None if node is False else self.of[node]
                if facts is not None and (wrong := words & ~self.rules.next_words(facts, at)):
                    return at, list(self.rules.words)[next(bits(wrong))]
        return None

    def check(self) -> None:
        """Refuse a logit that does not mean that its word may come next."""
        if self._wrong:
            at, word = self._wrong
            raise Undecided(f"after {at} words, it is not shown that {word} may come next where the net says so")


class Parts:
    """Sets of dimensions that are positive where a part of a derivation occurs.

    They are stored as far as a `policy` says: `all`; those that mean the part, for a sequence of symbols also those of
    each symbol (`parts`); or those that mean the part, if there are some, and nothing else (`least`).
    """

    def __init__(self, meanings: Meanings, policy: Policy, *, uniform: bool) -> None:
        self.meanings, self.program, self.rules = meanings, meanings.program, meanings.rules
        self.longest, self.policy, self.uniform = meanings.longest, policy, uniform
        self.truth, self.at_start = Truth(self.program, pads=not self.uniform), Truth(self.program)
        self.known: dict[tuple[Any, ...], list[Dims]] = {}
        self._said: dict[int, dict[Node | bool, int]] = {}
        self._relative: dict[int, Facts] = {}
        self._sequences: dict[tuple[Seq, int, int], list[Chain]] = {}
        self._follows: dict[tuple[int, frozenset[Node]], Dims] = {}

    def after(self, at: int, chain: Iterable[tuple[int, Dims]]) -> Dims:
        """Return what is positive at a position if some dimensions are, at some positions."""
        key = at, frozenset((dim, place) for place, dims in chain for dim in dims)
        if key not in self._follows:
            if len(self._follows) > MAX_SETS:
                raise Undecided(f"more than {MAX_SETS:,} parts of derivations")
            nodes = key[1] if self.uniform else key[1].union(*map(self.truth.implied, key[1]))
            self._follows[key] = self.truth.after(at, nodes)
        return self._follows[key]

    def meaning(self, dims: Iterable[int], at: int, key: tuple[Any, ...], mask: int) -> Dims:
        """Return the dimensions that mean one of some facts at a position, or all of them, if all are stored."""
        if self.policy == "all":
            return frozenset(dims)
        if self.uniform:
            key = (key[0], *(at - place for place in key[1:]))
        facts = ((dim, self._anywhere(dim) if self.uniform else self.meanings.of[dim, at]) for dim in dims)
        return frozenset(dim for dim, each in facts if each is None or each.get(key, 0) & mask)

    def _anywhere(self, dim: int) -> Facts:
        """Return what a dimension means at every position, relative to the position."""
        if dim not in self._relative:
            every: Facts | None = None
            for at in range(1, self.longest + 1):
                facts = self.meanings.of[dim, at]
                if facts is not None:
                    own = {(key[0], *(at - i for i in key[1:])): m for key, m in facts.items() if key[0] in "CF"}
                    every = either(every, own)
            self._relative[dim] = every or {}
        return self._relative[dim]

    def need(self, words: int, at: int, dims: Dims) -> None:
        """Refuse a part of a derivation behind which some words may come next, but are not all shown to be said."""
        if missing := words & ~self.said(at, dims):
            word = list(self.rules.words)[next(bits(missing))]
            raise Undecided(f"after {at} words, it is not shown that the net says {word} wherever it may come next")

    def said(self, at: int, dims: Dims) -> int:
        """Return the words whose logits are positive at a position where some dimensions are."""
        if at not in self._said:
            self._said[at] = {}
            for symbol, read in enumerate(self.program.said):
                for node in {self.program.node(dim, at) for dim in read}:
                    if node is not False and (node is not True or not self.uniform):
                        self._said[at][node] = self._said[at].get(node, 0) | 1 << symbol
        words = self._said[at].get(True, 0)
        for dim in dims:
            words |= self._said[at].get((dim, at), 0)
        return words

    def add(self, key: tuple[Any, ...], dims: Dims) -> bool:
        """Add a set of dimensions to a part; return whether that changes what is known of it."""
        sets = self.known.setdefault(key, [])
        if any(other <= dims for other in sets):
            return False
        sets[:] = [other for other in sets if not dims <= other]
        if len(sets) == MAX_VARIANTS:
            nearest = max(sets, key=lambda other: len(other & dims))
            sets.remove(nearest)
            return self.add(key, nearest & dims)
        sets.append(dims)
        return True

    # Symbols that are complete

    def complete(self, symbol: Symbol, i: int, j: int) -> list[Dims]:
        """Return the sets at j of a symbol that derives the words from i to j; none if it cannot."""
        if self.uniform:
            i, j = self.longest - (j - i), self.longest
        key = (symbol, i, j)
        if key not in self.known and j - i in self.rules.widths[symbol]:
            self.known[key] = []
            mask = 1 << self.rules.prefix[symbol,]
            if symbol in self.rules.words:
                token = self.rules.words[symbol] + 1
                own = frozenset(dim for dim, tokens in self.program.words.items() if token in tokens)
                self.add(key, self.after(j, [(j, own)]))
            for side in self.rules.rules.get(symbol, ()):
                for chain in self.sequence(side, i, j):
                    self.add(key, self.meaning(self.after(j, chain), j, ("C", i, j), mask))
        return self.known.get(key, [])

    def sequence(self, side: Seq, i: int, j: int) -> list[Chain]:
        """Return the sets of symbols that derive the words from i to j, at the ends of the symbols."""
        if not side or i >= j:
            return [()] if not side and i == j else []
        if self.uniform and j < self.longest:
            back = self.longest - j
            chains = self.sequence(side, i + back, self.longest)
            return [tuple((place - back, dims) for place, dims in chain) for chain in chains]
        key = side, i, j
        if key not in self._sequences:
            found: dict[Chain, None] = {}
            for width in self.rules.widths[side[-1]]:
                for before in self.sequence(side[:-1], i, j - width):
                    for dims in self.complete(side[-1], j - width, j):
                        chain = (*before, (j, dims))
                        mask = 1 << self.rules.prefix[side]
                        own = self.meaning(self.after(j, chain), j, ("C", i, j), mask) if before else dims
                        forget = own and self.policy == "least"
                        found[((j, own),) if forget else (*before, (j, dims | own))] = None
            self._sequences[key] = list(found)
        return self._sequences[key]


def left_to_right(parts: Parts) -> None:
    """Check the paths from left to right: what may follow, at the position where it may."""
    rules, longest = parts.rules, parts.longest
    waiting: list[tuple[Seq, int]] = []

    def opened(sequence: Seq, place: int, dims: Dims, at: int) -> None:
        own = parts.meaning(dims, at, ("F", at), 1 << rules.suffix[sequence]) if place else dims
        if parts.add(("open", sequence, place), own):
            waiting.append((sequence, place))

    opened(rules.rules[rules.root][0], 0, frozenset(), 0)
    for sequence, place in waiting:  # the list grows during this loop
        at = longest if place == ANYWHERE else place
        first, last = sequence[0], sequence[:0]
        for dims in list(parts.known["open", sequence, place]):
            here = parts.after(at, [(at, dims)]) if place else dims
            ended = sequence[1:] == (THE_END,) and first in rules.rules
            for i, j in _spans(parts, first, place) if len(sequence) > 1 else ():
                for own in parts.complete(first, i, j):
                    if parts.uniform and not place:
                        after = parts.at_start.after(j, ((dim, j) for dim in own))
                    else:
                        after = parts.after(j, [(i, here), (j, own)])
                    missing = rules.first[sequence[1]] & ~parts.said(j, after)
                    if ended and missing:
                        last = (THE_END,)  # what ends the sentence is followed further down
                    elif not ended:
                        parts.need(missing, j, after)
                        opened(sequence[1:], ANYWHERE if parts.uniform else j, after, j)
            for side in rules.rules.get(first, ()):
                opened((*side, *last), place, here, at)


def _spans(parts: Parts, symbol: Symbol, place: int) -> Iterator[tuple[int, int]]:
    """Yield where a symbol that may begin at a position can begin and end."""
    for width in parts.rules.widths[symbol]:
        i = parts.longest - width if place == ANYWHERE else place
        if i + width <= parts.longest and (i > 0 or not place):
            yield i, i + width


def top_down(parts: Parts) -> None:
    """Check the paths from the root down, at the position that they lead to."""
    rules = parts.rules
    for at in range(1, parts.longest + 1):
        parts.add(("holds", rules.root, 0, at), parts.after(at, ()))
        for symbol in reversed(rules.rules):  # parents first
            for i in range(at + 1):
                for dims in list(parts.known.get(("holds", symbol, i, at), ())):
                    for child, k, elders in _steps(parts, symbol, i, at):
                        after = parts.after(at, [(at, dims), *elders])
                        if child in rules.words:
                            parts.need(rules.first[child], at, after)
                        else:
                            own = parts.meaning(after, at, ("F", k), rules.begins[child])
                            parts.add(("holds", child, k, at), own)


def bottom_up(parts: Parts) -> None:
    """Check the paths from the next word up, at the position before it."""
    rules = parts.rules
    words = list(rules.words)
    for at in range(1, parts.longest + 1):
        follows: dict[tuple[Symbol, int], int] = {(word, at): rules.first[word] for word in words}
        follows |= {(symbol, at): rules.first[symbol] for symbol in rules.rules}
        for symbol in rules.rules:  # children first
            for i in range(at):
                for child, k, elders in _steps(parts, symbol, i, at):
                    for index in bits(follows.get((child, k), 0)):
                        follows[symbol, i] = follows.get((symbol, i), 0) | 1 << index
                        sets = [frozenset[int]()] if k == at else parts.known["ahead", child, k, at, index]
                        for dims in sets:
                            after = parts.after(at, [(at, dims), *elders])
                            own = parts.meaning(after, at, ("N", i, at, symbol), 1 << index)
                            parts.add(("ahead", symbol, i, at, index), own)
        for index in bits(follows.get((rules.root, 0), 0)):
            for dims in parts.known["ahead", rules.root, 0, at, index]:
                parts.need(1 << index, at, parts.after(at, [(at, dims)]))


def _steps(parts: Parts, symbol: Symbol, i: int, at: int) -> Iterator[tuple[Symbol, int, Chain]]:
    """Yield the children of a symbol that began at i which may hold the next word: child, beginning, elder siblings."""
    rules = parts.rules
    for side in rules.rules[symbol]:
        for index, child in enumerate(side):
            for k in sorted(i + width for width in rules.widths_of(side[:index])):
                if 0 <= at - k < max(rules.widths[child]):
                    for elders in parts.sequence(side[:index], i, k):
                        yield child, k, elders


TEMPLATES: dict[str, Callable[[Parts], None]] = {
    "left to right": left_to_right,
    "top down": top_down,
    "bottom up": bottom_up,
}


def _uniform(program: ClauseProgram) -> bool:
    """Return whether a program is the same at every position: fixed distances, and no positions in rows."""
    read = {dim for rows in program.rows.values() for row in rows for dim in row}
    read |= {dim for dims in program.said for dim in dims} | {source for source, _, _ in program.copied.values()}
    here = np.arange(1, program.longest + 1)
    backs = ((here - places)[-1] for _, places, _ in program.copied.values())
    return not read & program.held.keys() and all(
        np.array_equal(places, np.maximum(here - back, 0))
        for back, (_, places, _) in zip(backs, program.copied.values(), strict=True)
    )
