r"""Lemma "all inputs": where the inputs of a spec are finitely many, the network itself is run on all of them.

Statement: let $L_T$ be the words of the spec up to the length $T$ that the network reads. If the network's answer after
every prefix of every word of $L_T$ is right, then it computes the spec up to $T$. Nothing is assumed of the weights:
the answers are those of the stored numbers in float64, so that the proof is `exact`.

What must hold is that the list is complete. So a network that also reads words longer than $T$ is left to other
lemmas. Words are listed by

| spec | words |
| --- | --- |
| any sequence is valid | all sequences of input symbols; of every length if the network looks ahead |
| associations, facts | the prefixes that the spec itself lists, shorter ones first |
| a chain of thought | every prompt, followed by its thought, cut at $T$ |
| recall, copying, formula | all well-formed words, if $T$ is their length: prefixes of longer ones are not listed |

A network that does not look ahead answers after a prefix as it does inside a longer word, so only words that no other
one continues are run. A wrong answer is a counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification.checks.words import batches, by_length
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.margins.values import Undecided
from vitrify.net.inference import batch_logits
from vitrify.spec.computation.circuit import Circuit
from vitrify.spec.computation.thought import Thoughts
from vitrify.spec.computation.turing import TuringMachine
from vitrify.spec.kinds import Language
from vitrify.spec.memory.associations import Associations
from vitrify.spec.memory.facts import Facts
from vitrify.spec.memory.knowledge import Knowledge
from vitrify.spec.tasks.catalogue import Task, WellFormed
from vitrify.spec.tasks.copying import Copying
from vitrify.spec.tasks.formula_value import FormulaValue
from vitrify.spec.tasks.recall import Recall

MAX_PREFIXES = 1 << 17  # of all words; more are not run
MAX_RUN = 1 << 19  # symbols of all prompts and their thoughts, as far as the network reads them
MAX_HELD = 1 << 24  # symbols of all prefixes of padded words
MAX_WORK = 2e11  # multiplications of all runs: less than a minute on one core

Word = tuple[int, ...]


@lemma(Associations, Facts, Knowledge, Circuit, TuringMachine, Task)
def all_inputs(case: SpecCase) -> SpecProof:
    """Run the network on every valid input up to its length."""
    net = case.net
    if net.pads < 1:
        raise Undecided("without a pad in front there is no answer before the first symbol")
    if net.longest > net.max_length:
        raise Undecided(f"the network reads words up to {net.longest:,} symbols, too many to be listed")
    words = _words(case)
    answers = len({word[:end] for word in words for end in range(len(word) + 1)})
    _need_few(answers)
    if net.cost * sum(map(len, words)) > MAX_WORK:
        raise Undecided("the network is too large to be run on every input of the spec")
    for tokens in batches(net, by_length(words)):
        wrong = _first_wrong(case, tokens)
        if wrong is not None:
            return SpecProof("all inputs", None, witness=wrong)
    return SpecProof("all inputs", net.max_length, {"prefixes of inputs": answers}, exact=True)


def _need_few(inputs: float) -> None:
    if inputs > MAX_PREFIXES:
        raise Undecided(f"the spec has more than {MAX_PREFIXES:,} inputs")


def _first_wrong(case: SpecCase, tokens: Ints) -> Word | None:
    """Return the shortest prefix of some words of one length after which the answer is wrong; None if none is."""
    words = tokens[:, case.net.pads :]
    logits = batch_logits(case.weights, tokens)[:, case.net.pads - 1 :]
    wrong = np.argwhere(~(case.oracle.errors(words, logits) <= case.oracle.tolerance()))
    if not len(wrong):
        return None
    if case.net.looks_ahead:
        wrong = wrong[wrong[:, 1] == words.shape[1]]
        if not len(wrong):
            raise Undecided(f"an answer inside a word of length {words.shape[1]} is wrong")
    row, end = wrong[wrong[:, 1].argmin()]
    return tuple(words[row, :end].tolist())


def _words(case: SpecCase) -> set[Word]:
    """Return words whose prefixes are all inputs; none is a prefix of another one unless the network looks ahead."""
    net, language = case.net, case.oracle.language
    if language is None:
        letters = range(1, len(net.inputs))
        shortest = net.min_length if net.looks_ahead else net.max_length
        if len(letters) > 1:
            _need_few(float(len(letters)) ** min(net.max_length, MAX_PREFIXES.bit_length()))
        lengths = range(shortest, net.max_length + 1) if letters else [0]
        return {word for length in lengths for word in product(letters, repeat=length)}
    ids = net.input_ids
    listed = islice(_listed(case.spec, language.source, net.max_length), MAX_PREFIXES + 1)
    words = {tuple(ids[symbol] for symbol in word) for word in listed}
    _need_few(len(words))
    return words if net.looks_ahead else words - {word[:end] for word in words for end in range(len(word))}


def _listed(spec: object, language: Language, longest: int) -> Iterator[tuple[str, ...]]:
    """Yield words of a language whose prefixes are all its words up to a length."""
    if isinstance(language, Thoughts):
        prompts = sum(1 for _ in islice(language.spec.prompts(), MAX_PREFIXES + 1))
        if prompts * longest > MAX_RUN:
            raise Undecided(f"{prompts:,} prompts or more, to length {longest}, are too many to be run")
        return (tuple(islice(language.stream(prompt), longest)) for prompt in language.spec.prompts())
    if isinstance(spec, FormulaValue) and spec.length**2 << len(spec.variables) > MAX_HELD:
        raise Undecided(
            f"the inputs of {len(spec.variables)} variables, to length {spec.length}, are too many to be run"
        )
    complete = (
        isinstance(language, WellFormed)
        and isinstance(spec, Recall | Copying | FormulaValue)
        and longest >= spec.length
    )
    if complete or isinstance(spec, Associations | Facts):
        return language.prefixes(longest)
    raise Undecided("the spec does not list all of its words")
