r"""Agreement of a network with a file of sequences and right answers.

Sequences are run in batches of similar lengths, and the file is read as it is needed, so that its size does not matter.
Symbols and sets agree if they are equal; numbers (probabilities, log-probabilities, values) agree if they differ by at
most the tolerance $\varepsilon$: $\lvert x - y\rvert \le \varepsilon \max(1, \lvert y\rvert)$.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from math import exp, inf, isclose, log
from pathlib import Path
from typing import IO, Any

from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.net.answers import (
    Answer,
    ClassAnswer,
    GenerationAnswer,
    ImageAnswer,
    LegalNextAnswer,
    NextTokenAnswer,
    OutputAnswer,
    StatesAnswer,
    ValuesAnswer,
    answers_of,
    generation_answers,
)
from vitrify.net.architecture import Architecture
from vitrify.net.example_files import LabeledExample, Tick, read_examples
from vitrify.net.inference import UNKNOWN, encode_input
from vitrify.net.weights import Weights, has_positions
from vitrify.spec.ngrams.trie import END

BATCH = 1024  # sequences that are run together
SHOWN = 10  # disagreements that are recorded
TRUTH = {"1": True, "true": True, "yes": True, "accept": True, "accepted": True}
TRUTH |= {"0": False, "false": False, "no": False, "reject": False, "rejected": False}


@dataclass(frozen=True)
class WrongAnswer:
    """A right answer that the network does not give; `answer` is None where it gives none, or a text that says why."""

    where: str
    tokens: tuple[str, ...]
    name: str
    expected: Any
    answer: Any


@dataclass(frozen=True)
class Tally:
    """The number of right answers of one name that were compared, and of those that the network gives."""

    compared: int
    agreed: int


@dataclass(frozen=True)
class FileScore:
    """Agreement of a network with a file.

    `agreement` has a tally for each name of an answer; `ignored` counts answers of names that such a network does not
    give. `left_out` counts sequences that are too long, `cut_short` thoughts that did not come to an end. `tokens` and
    `log_prob` are those of all sequences under a language model, ends included.
    """

    sequences: int
    agreeing: int
    left_out: int
    cut_short: int
    agreement: Mapping[str, Tally]
    ignored: Mapping[str, int]
    tokens: int
    log_prob: float | None
    disagreements: tuple[WrongAnswer, ...]

    @property
    def agrees(self) -> bool:
        """Whether the network gives every right answer that was compared."""
        return self.agreeing == self.sequences

    @property
    def perplexity(self) -> float | None:
        """The perplexity of a language model on all sequences; None for other networks."""
        if self.log_prob is None or not self.tokens:
            return None
        return exp(-self.log_prob / self.tokens) if self.log_prob > -inf else inf

    def to_json(self) -> JsonObject:
        """Return the score as plain JSON data."""
        return {"agrees": self.agrees, "perplexity": self.perplexity, **_plain(asdict(self))}


def score(
    weights: Weights[Architecture],
    source: Path | str | IO[str] | Iterable[LabeledExample],
    *,
    decode: bool = False,
    steps: int | None = None,
    spec: object = None,
    append: str | None = None,
    longest: int | None = None,
    tolerance: float = 1e-6,
    shown: int = SHOWN,
    tick: Tick = lambda _done, _total: None,
) -> FileScore:
    """Return the agreement of a network with a file or folder (by its path), a stream, or examples.

    A sequence without an answer must be a sentence for a network of next-symbol sets, and counts in the perplexity of a
    language model. With `decode`, the network generates up to `steps` symbols after each sequence, by default up to its
    length, and `spec` says what they mean. `append` is a symbol that is put behind each sequence, as often as its right
    output has symbols. Sequences of more than `longest` symbols, with what is appended, are left out.
    """
    if isinstance(source, Path | str) or hasattr(source, "readline"):
        source = read_examples(Path(source) if isinstance(source, str) else source, tick)  # type: ignore[arg-type]
    scorer = _Scorer(weights, decode, steps, spec, append, longest, tolerance, shown)
    rest = iter(source)
    while batch := list(islice(rest, BATCH)):
        scorer.take(batch)
    return scorer.score()


@dataclass
class _Scorer:
    """Counts of what has been compared so far."""

    weights: Weights[Architecture]
    decode: bool
    steps: int | None
    spec: object
    append: str | None
    longest: int | None
    tolerance: float
    shown: int
    counts: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    agreed: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    log_prob: float | None = None
    disagreements: list[WrongAnswer] = field(default_factory=list)

    def take(self, batch: Sequence[LabeledExample]) -> None:
        """Run a network on some examples and compare its answers."""
        spelled = [self.spelled(example) for example in batch]
        pairs = [(example, self.symbols(example)) for example in spelled]
        fitting = [pair for pair in pairs if self.longest is None or len(pair[1]) <= self.longest]
        self.counts["left out"] += len(pairs) - len(fitting)
        for (example, _), answer in zip(fitting, self.answers(fitting), strict=True):
            self.counts["sequences"] += 1
            self.counts["agreeing"] += self.agrees(example, answer)
            if isinstance(answer, NextTokenAnswer):
                self.add_probability(answer)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The symbols that the network knows; none if it reads unknown words too, which are then words as they are."""
        inputs = self.weights.architecture.inputs if has_positions(self.weights) else ()
        return frozenset() if set(UNKNOWN) & set(inputs) else frozenset(inputs)

    def spelled(self, example: LabeledExample) -> LabeledExample:
        """Return an example as symbols: a word of a text that the network does not know may be its characters."""
        sequence, answers = example.sequence, dict(example.answers)
        if isinstance(sequence, str):
            sequence = _spelled(sequence.split(), self.vocabulary)
        if "output" in answers:
            answers["output"] = _spelled(answers["output"], frozenset(self.weights.architecture.output.symbols))
        return LabeledExample(example.where, sequence, answers)

    def symbols(self, example: LabeledExample) -> tuple[str, ...]:
        """Return the symbols that the network reads, with those that are appended."""
        appended = () if self.append is None else (self.append,)
        return (*example.sequence, *appended * len(example.answers.get("output", ("one",))))

    def answers(self, pairs: Sequence[tuple[LabeledExample, tuple[str, ...]]]) -> Iterator[Answer]:
        """Return the answers of the network to examples, in their order."""
        inputs = []
        for example, symbols in pairs:
            try:
                inputs.append(encode_input(self.weights, symbols))
            except InputError as error:
                raise InputError(f"{example.where}: {error}") from None
        sequences = [symbols for _, symbols in pairs]
        if self.decode:
            if not has_positions(self.weights):
                raise InputError("this network reads images, and does not generate symbols: leave --decode out")
            return iter(generation_answers(self.weights, sequences, self.steps, None, self.spec))
        everywhere = self.weights.architecture.output.kind == "next" or any(
            isinstance(example.answers.get(name), list | tuple) for example, _ in pairs for name in ("next", "class")
        )
        return answers_of(self.weights, sequences, inputs, everywhere, None)

    def agrees(self, example: LabeledExample, answer: Answer) -> bool:
        """Compare the answer to one example, and return whether all that was compared agrees."""
        expected = dict(example.answers)
        if not expected and isinstance(answer, LegalNextAnswer):
            expected = {"accept": "true"}
        answers = {name: _named(answer, name, value) for name, value in expected.items()}
        answers = {name: value for name, value in answers.items() if value is not NOT_GIVEN}
        self.ignored.update(expected.keys() - answers.keys())
        if not answers and not isinstance(answer, NextTokenAnswer):
            names = ", ".join(expected) or "no answer"
            raise InputError(
                f"{example.where}: has {names}, which can't be compared with this network's answers "
                f"({type(answer).__name__.removesuffix('Answer').lower()})"
            )
        self.compared.update(answers.keys())
        cut_short = answer.cut_short if isinstance(answer, GenerationAnswer) else ""
        wrong = [name for name, value in answers.items() if cut_short or not self.equal(expected[name], value)]
        self.agreed.update(answers.keys() - set(wrong))
        for name in wrong[: max(0, self.shown - len(self.disagreements))]:
            shown = f"cut short: {cut_short}" if cut_short else answers[name]
            self.disagreements.append(WrongAnswer(example.where, answer.tokens, name, expected[name], shown))
        self.counts["cut short"] += bool(cut_short)
        return not wrong

    def equal(self, expected: Any, answer: Any) -> bool:
        """Return whether an answer is the right one; numbers may differ by the tolerance."""
        if isinstance(expected, float) or isinstance(answer, float):
            near = self.tolerance * max(1.0, abs(expected)) if abs(expected) < inf else 0.0
            return answer is not None and (expected == answer or isclose(expected, answer, rel_tol=0, abs_tol=near))
        if isinstance(expected, dict) and isinstance(answer, dict):
            number = any(isinstance(value, float) for value in expected.values())
            names = {**expected, **answer} if number else expected  # what a distribution leaves out has probability 0
            missing = 0.0 if number else None
            return all(self.equal(expected.get(name, missing), answer.get(name, missing)) for name in names)
        if isinstance(expected, list | tuple) and isinstance(answer, list | tuple):
            return len(expected) == len(answer) and all(map(self.equal, expected, answer))
        if isinstance(answer, bool):
            return TRUTH.get(str(expected).lower()) is answer
        if isinstance(expected, str) and isinstance(answer, str) and expected.lower() in TRUTH:
            return TRUTH[expected.lower()] == TRUTH.get(answer.lower())
        return bool(expected == answer)

    def add_probability(self, answer: NextTokenAnswer) -> None:
        """Add the log-probability of a sequence, with that of its end if the network predicts ends."""
        end = answer.next.get(END)
        parts = [*answer.log_probs, *([] if end is None else [log(end) if end else -inf])]
        self.counts["tokens"] += len(parts)
        self.log_prob = (self.log_prob or 0.0) + sum(parts)

    def score(self) -> FileScore:
        """Return the score; a file without a sequence is refused."""
        if not self.counts["sequences"]:
            left_out = self.counts["left out"]
            raise InputError(
                f"all {left_out:,} sequences are longer than {self.longest}" if left_out else "there are no sequences"
            )
        return FileScore(
            sequences=self.counts["sequences"],
            agreeing=self.counts["agreeing"],
            left_out=self.counts["left out"],
            cut_short=self.counts["cut short"],
            agreement={name: Tally(count, self.agreed[name]) for name, count in self.compared.items()},
            ignored=dict(self.ignored),
            tokens=self.counts["tokens"],
            log_prob=self.log_prob,
            disagreements=tuple(self.disagreements),
        )


NOT_GIVEN = object()  # an answer that networks of this kind do not give


def _spelled(words: Sequence[str], known: frozenset[str]) -> tuple[str, ...]:
    """Return words as symbols: those that are unknown, but whose characters are known, as their characters."""
    split = (list(word) if word not in known and set(word) <= known else [word] for word in words)
    return tuple(symbol for word in split for symbol in word)


def _named(answer: Answer, name: str, expected: Any) -> Any:
    """Return the part of an answer that a file calls by this name, or NOT_GIVEN; None where there is none."""
    several = isinstance(expected, list | tuple)
    size = len(expected) if several else 1
    parts: dict[str, Any] = {}
    if isinstance(answer, StatesAnswer):
        label = answer.accept if str(expected).lower() in TRUTH else answer.states[-1]
        parts = {"accept": answer.accept, "label": label, "state": answer.states[-1], "states": answer.states}
        parts["output"] = answer.states[len(answer.states) - size :]
    elif isinstance(answer, OutputAnswer):
        last = answer.output[-1] if answer.output else None
        parts = {"accept": TRUTH.get(str(last).lower()), "label": last}
        parts["output"] = answer.output[-size:] if size else ()
    elif isinstance(answer, ClassAnswer | ImageAnswer):
        labels = answer.labels if isinstance(answer, ClassAnswer) and several else (answer.label,)
        parts = {"label": answer.label, "class": labels if several else answer.label, "output": labels[-size:]}
    elif isinstance(answer, LegalNextAnswer):
        legal = list(map(frozenset, answer.legal))
        sentence = all(token in each for token, each in zip((*answer.tokens, END), legal, strict=True))
        parts = {"accept": sentence, "label": sentence, "next": legal if several else legal[-1]}
    elif isinstance(answer, NextTokenAnswer):
        parts = {"log_prob": answer.log_prob, "log_probs": answer.log_probs}
        if isinstance(expected, dict) or (several and all(isinstance(each, dict) for each in expected)):
            parts["next"] = list(map(dict, answer.distributions)) if several else dict(answer.next)
        elif isinstance(expected, frozenset) or several:
            legal = [frozenset(symbol for symbol, p in each.items() if p > 0) for each in answer.distributions]
            parts["next"] = legal if several else legal[-1]
    elif isinstance(answer, ValuesAnswer):
        parts = {"values": dict(answer.values)}
    elif isinstance(answer, GenerationAnswer):
        conclusion = dict(answer.conclusion)
        parts = {"thought": answer.symbols, "conclusion": conclusion, "state": conclusion.get("state")}
        parts |= dict.fromkeys(("accept", "label"), TRUTH.get(conclusion.get("accepted", "")))
        text = conclusion.get("tape", conclusion.get("string"))
        parts["output"] = tuple(conclusion.values()) if text is None else tuple(text.split())
    return parts.get(name, NOT_GIVEN)


def _plain(value: Any) -> Any:
    """Return data with sets as sorted lists, and infinite numbers as JSON has them."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return sorted(value) if isinstance(value, frozenset) else value
