"""The state of an automaton with two states depends only on how often each letter occurs.

Statement: In every automaton with two states and two letters, words with the same letters in another order lead to the
same state.
Checked: Two automata, a counter modulo 2 and one that remembers the last letter: each word to length 6 against the same
letters in alphabetical order.
Not checked: The other automata with two states; a counterexample ends the check.
Source: A conjecture of a beginner, which is false [S].
Saboteur: The second letter always leads to the first state.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from vitrify.claims._nets import CaseKind, Claim, Domain, Evidence, Method, Subject, Subjects, quantities, witnessed
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic

LONGEST = 6


def subjects() -> Subjects:
    yield Subject("counter modulo 2", cyclic(2))
    yield Subject("last letter", Automaton.explore("0", "01", lambda _, letter: letter, accepts=bool))


def check(subject: Subject) -> Evidence:
    words = [word for length in range(LONGEST + 1) for word in product(subject.spec.alphabet, repeat=length)]
    for cases, word in enumerate(words, start=1):
        state, expected = (subject.spec.run(letters)[-1] for letters in (word, tuple(sorted(word))))
        if state != expected:
            return witnessed({"word": "".join(word), "state": state, "state in order": expected}, cases)
    domain = Domain(CaseKind.WORDS, Method.EXHAUSTIVE, len(words), 0, LONGEST)
    return witnessed(None, len(words), domain).adding(*quantities({"states": 2}, {"states": len(subject.spec.states)}))


def sabotage(subject: Subject) -> Subject:
    first, second = subject.spec.states
    transitions = {first: {"0": second, "1": first}, second: {"0": first, "1": first}}
    names = {"states": (first, second), "alphabet": ("0", "1"), "initial": first, "accepting": (second,)}
    return replace(subject, spec=Automaton.from_dict(transitions=transitions, **names))


CLAIM = Claim(subjects, check, sabotage, id="R902", standing="conjecture", uncertified="about automata, not networks")
