"""Which oracle judges which network: registered ones by explicit rules, and that of the spec's meaning otherwise.

Every registered oracle must give the answers of the spec's meaning, which is written down without it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

from vitrify.certification.checks.points import point_oracle_for
from vitrify.certification.oracles import catalogue
from vitrify.certification.oracles.catalogue import oracle, oracle_for, registered, registrations
from vitrify.certification.oracles.meanings import MeaningOracle
from vitrify.errors import FolderError, InputError
from vitrify.net.architecture import Output, OutputKind, Reads
from vitrify.registry import Declaration
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic
from vitrify.spec.kinds import Meaning, Spec, kinds
from vitrify.spec.ngrams.model import NGramModel

SAMPLES = {f"{kind.spec.__name__}, {name}": s for kind in kinds() for name, s in kind.spec.samples().items()}
CASES = [(name, output) for name, spec in SAMPLES.items() for output in spec.meanings()]
OWN = {  # the oracle of every kind and output that has a registered one
    ("Automaton", "recognizer"): "StateOracle",
    ("Automaton", "class"): "FinalStateOracle",
    ("NGramModel", "lm"): "NextTokenOracle",
    ("ProbabilisticAutomaton", "lm"): "automaton_oracle",
    ("Grammar", "lm"): "NextWordOracle",
    ("Dyck", "class"): "MembershipOracle",
    ("Automaton", "transducer"): "AcceptanceOracle",
    ("Automaton", "next"): "legal_letters",
    ("Formula", "transducer"): "TruthOracle",
    ("Crasp", "transducer"): "TruthOracle",
    ("Program", "transducer"): "ProgramOracle",
    ("Program", "values"): "ProgramOracle",
    ("Knowledge", "class"): "AnswerOracle",
    ("SparseAveraging", "values"): "SetOracle",
    ("Estimate", "values"): "TaskOracle",
    ("PointerAveraging", "values"): "TaskOracle",
} | {
    (task, output): "TaskOracle"
    for task in (
        "Comparison",
        "Composition",
        "Copying",
        "KHop",
        "Match2",
        "Match3Bigram",
        "Match3Local",
        "FormulaValue",
        "Nearest",
        "Reachability",
        "Recall",
    )
    for output in ("transducer", "class")
}


def network(spec: Any, output: str) -> Any:
    """As much of a network as an oracle looks at."""
    meaning = spec.meanings()[output]
    inputs = ("<s>", *meaning.inputs)
    return SimpleNamespace(
        inputs=inputs,
        input_ids={symbol: place for place, symbol in enumerate(inputs)},
        output=Output(output, meaning.outputs, accepting=meaning.accepting, error=1e-9),  # type: ignore[arg-type]
        reads="tokens",
        max_length=spec.length if isinstance(getattr(spec, "length", None), int) else 9,
        min_length=0,
        looks_ahead=False,
        soft=True,
    )


@pytest.mark.parametrize(("name", "output"), CASES)
def test_the_rules_choose_the_oracle(name: str, output: str) -> None:
    spec = SAMPLES[name]
    maker = registered(spec, network(spec, output))
    assert (maker.__name__ if maker else None) == OWN.get((type(spec).__name__, output))


@pytest.mark.parametrize(
    ("name", "output"), [case for case in CASES if (type(SAMPLES[case[0]]).__name__, case[1]) in OWN]
)
def test_a_registered_oracle_gives_the_answers_of_the_meaning(name: str, output: str) -> None:
    spec, rng = SAMPLES[name], np.random.default_rng(0)
    net = network(spec, output)
    fast, plain = oracle_for(spec, net), MeaningOracle(spec.meanings()[output], net)
    words = [*plain.cases(rng, 8), *fast.cases(rng, 8)]
    if plain.language is not None:
        words += [*islice(plain.language.beginnings(), 20), *(plain.language.draw(rng) for _ in range(4))]
    else:
        words += [rng.integers(1, len(net.inputs), size=size).tolist() for size in (0, 1, 2, net.max_length)]
    assert (fast.language is None) == (plain.language is None)
    for word in [np.array(word, dtype=np.int64) for word in words]:
        right = plain.right(word)
        assert np.allclose(fast.right(word), right, rtol=0, atol=1e-12, equal_nan=True)
        asked = ~np.isnan(right[:, 0])
        assert (plain.has_answer(word[None])[0] == asked).all()
        good = _logits(plain.meaning, right)
        moved = good + rng.normal(size=good.shape) * 10.0 ** rng.integers(-13, 2, size=(len(good), 1))
        for logits in (good, moved, np.full_like(good, np.nan)):
            passes = [o.errors(word[None], logits[None].copy())[0] <= o.tolerance() for o in (fast, plain)]
            near = _near_a_threshold(plain, word, logits)
            assert (passes[0] == passes[1])[~near].all()
        assert (plain.errors(word[None], good[None])[0] <= plain.tolerance()).all()
        assert (plain.errors(word[None], np.full_like(good, np.nan)[None])[0] > plain.tolerance()).tolist() == [*asked]


@pytest.mark.parametrize(("name", "output"), CASES)
def test_no_oracle_judges_a_network_by_other_names(name: str, output: str) -> None:
    spec = SAMPLES[name]
    meaning = spec.meanings()[output]
    known = network(spec, output)
    turned = network(spec, output)
    turned.output = replace(turned.output, symbols=meaning.outputs[::-1])
    if meaning.answer == "symbol":  # of which each is known by its name
        word = np.ones(min(2, known.max_length), dtype=np.int64)[: len(meaning.inputs) and None]
        assert np.array_equal(
            oracle_for(spec, turned).right(word)[:, ::-1], oracle_for(spec, known).right(word), equal_nan=True
        )
    elif len(meaning.outputs) > 1:
        with pytest.raises(FolderError, match="the same symbols and answers"):
            oracle_for(spec, turned)
    for change in (
        {"symbols": (*meaning.outputs, "another")},
        {"accepting": tuple(set(meaning.outputs) ^ set(meaning.accepting))},
    ):
        other = network(spec, output)
        other.output = replace(other.output, **change)
        with pytest.raises(FolderError, match="the same"):
            oracle_for(spec, other)
    if len(meaning.inputs) > 1:
        known.inputs = (known.inputs[0], *meaning.inputs[::-1])
        with pytest.raises(FolderError, match="the same symbols and answers"):
            oracle_for(spec, known)


def test_the_first_input_is_the_beginning_whatever_its_name() -> None:
    spec = next(spec for spec in SAMPLES.values() if isinstance(spec, NGramModel))
    known, renamed = network(spec, "lm"), network(spec, "lm")
    renamed.inputs = (known.inputs[1], *known.inputs[1:])
    word, rng = np.array([1, 2]), np.random.default_rng(0)
    one, two = oracle_for(spec, known), oracle_for(spec, renamed)
    assert np.array_equal(one.right(word), two.right(word))
    assert one.cases(rng, 4)
    assert two.cases(rng, 4)


def _logits(meaning: Meaning, right: Any) -> Any:
    """Logits that say the right answers."""
    rows = np.nan_to_num(right)
    if meaning.answer == "distribution":
        return np.log(np.maximum(np.where(rows.any(axis=1, keepdims=True), rows, 1.0), 1e-300))
    return rows if meaning.answer != "set" else 2 * rows - 1


def _near_a_threshold(plain: MeaningOracle, word: Any, logits: Any) -> Any:
    """Where two oracles with other thresholds may differ: ties of 1e-12 and 1e-6, tolerances of 1e-12 and 1e-9."""
    if plain.meaning.answer in ("distribution", "number"):
        return ((far := plain.errors(word[None], logits[None])[0]) > 1e-13) & (far < 1e-8)
    top = np.sort(logits, axis=-1)
    return np.abs(top[:, -1] - top[:, -2]) < 1e-5 if logits.shape[1] > 1 else np.zeros(len(logits), dtype=bool)


def test_registrations_name_known_outputs_and_readings() -> None:
    assert {entry.reads for entry in registrations()} <= set(get_args(Reads))
    assert {entry.output for entry in registrations()} <= {None, *get_args(OutputKind)}
    points = {entry.reads: entry.specs for entry in registrations() if entry.reads != "tokens"}
    assert points.keys() == {"rows", "vector", "image"}


FIELDS = ("states", "alphabet", "transitions", "initial", "accepting")


class Heir(Automaton):
    """A kind that descends from another one."""


@oracle(Heir)
def first(spec: object, net: object) -> str:
    del spec, net
    return "first"


@oracle(Automaton, output="class")
def second(spec: object, net: object) -> str:
    del spec, net
    return "second"


def test_the_nearest_class_wins_and_then_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    heir = Heir(*(getattr(cyclic(3), name) for name in FIELDS))
    net = network(cyclic(3), "class")
    assert registered(heir, net).__name__ == "FinalStateOracle"  # type: ignore[union-attr]
    entry = catalogue.Registration(__name__, "first", ("Heir",), None, "tokens")
    monkeypatch.setattr(catalogue, "registrations", lambda: (*registrations(), entry))
    assert registered(heir, net) is first
    assert registered(cyclic(3), net).__name__ == "FinalStateOracle"  # type: ignore[union-attr]
    same_name = type("Heir", (Automaton,), {})(*(getattr(heir, name) for name in FIELDS))
    assert registered(same_name, net).__name__ == "FinalStateOracle"  # type: ignore[union-attr]


def test_two_oracles_of_the_same_networks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = catalogue.Registration(__name__, "second", ("Automaton",), "class", "tokens")
    monkeypatch.setattr(catalogue, "registrations", lambda: (*registrations(), entry))
    with pytest.raises(InputError, match=r"FinalStateOracle and .*:second are oracles of the same networks"):
        registered(cyclic(3), network(cyclic(3), "class"))
    assert registered(cyclic(3), network(cyclic(3), "recognizer"))


@pytest.mark.parametrize("line", ["@oracle\nclass A: ...", "@oracle()\nclass A: ...", "@oracle(a.B)\nclass A: ..."])
def test_a_registration_that_cannot_be_read_is_refused(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "declared", lambda *_: [Declaration("mine.oracles", ast.parse(line).body[0])])
    with pytest.raises(InputError, match=r"mine\.oracles: write @oracle\(Class"):
        registrations.__wrapped__()


def test_what_has_no_oracle_is_told() -> None:
    net = network(cyclic(3), "recognizer")
    with pytest.raises(FolderError, match="no oracle for a spec of type int"):
        oracle_for(3, net)
    net.output = Output("next", ("a",))
    lm = SimpleNamespace(reads="tokens", inputs=("<s>", "a"), output=Output("lm", ("a",)))
    with pytest.raises(FolderError, match="of type WordPatterns and 'lm' answers"):
        oracle_for(SAMPLES["WordPatterns, one word"], lm)  # type: ignore[arg-type]
    net.reads = "rows"
    with pytest.raises(FolderError, match="no oracle for a spec of type Automaton and a net that reads rows"):
        point_oracle_for(cyclic(3), net)


def test_certifying_a_regex_imports_no_other_kind() -> None:
    program = """
import sys
from vitrify.certification import certify
from vitrify.constructions.log_depth import log_depth
from vitrify.kit import assemble
from vitrify.spec.automata.automaton import Automaton
spec = Automaton.from_regex("(ab)*")
assert certify(assemble(log_depth(spec, max_length=4)), spec, max_length=3).verdict == "holds"
from vitrify.spec.kinds import suffixes
imported = {entry.module for entry in suffixes().values()} & set(sys.modules)
assert imported == {"vitrify.spec.automata.automaton"}, imported
oracles = {name.split(".")[3] for name in sys.modules if name.startswith("vitrify.certification.oracles.")}
assert oracles <= {"automata", "catalogue", "meanings", "right"}, oracles
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_numbers_are_judged_within_the_error_that_a_network_states() -> None:
    class Twice(Spec):
        """Twice the number of letters."""

        def meanings(self) -> dict[str, Meaning]:
            return {"values": Meaning("number", ("a",), ("n",), lambda w: [None, *((2.0 * i,) for i in range(len(w)))])}

        read = to_text = samples = None  # type: ignore[assignment]

    net = network(Twice(), "values")
    net.output, net.looks_ahead = Output("values", ("n",), error=0.1), True
    judge, word = oracle_for(Twice(), net), np.array([1, 1])
    logits = np.array([[5.0], [0.05], [2.5]])
    assert judge.errors(word[None], logits[None])[0].tolist() == pytest.approx([0.0, 0.05, 0.5])
    assert judge.tolerance() == 0.1
    assert judge.witness(word, logits) == {"word": ["a", "a"], "expected": [2.0], "actual": [2.5]}
    logits[1] = np.nan
    assert judge.witness(word, logits)["position"] == 1
