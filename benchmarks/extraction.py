"""Automata extracted from LSTMs and transformers that were trained here, on a CPU.

    python benchmarks/extraction.py [--file build/extraction.jsonl] [--only tomita-1,parity] [--seeds 8]

For each language and architecture, `--seeds` nets are trained on random words of one length; then all words to that
length say which nets are right. Of those that are, `extract` must return the minimal automaton, certified on the same
words; of the others, the shortest wrong word must be confirmed by a run of the net on this word alone. Beside it stands
AALpy alone: KV with its oracle of random words. Rows are appended to the file; those that it has are not run again. The
last output is the table of all rows.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax.numpy as jnp
import numpy as np
from aalpy.learning_algs import run_KV
from aalpy.oracles import RandomWordEqOracle

import vitrify as v
from vitrify.arrays import Array
from vitrify.extraction.automata import answering_after_every_letter
from vitrify.extraction.learning import machine_of
from vitrify.extraction.observations import Observations, SearchBudget
from vitrify.net.transformer_forward import Cache
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata.moore import MooreMachine

MODELS = {
    "LSTM": ("recurrent", {"kind": "lstm", "state": 32, "d_embed": 16}),
    "transformer": ("transformer", {"layers": 2, "heads": 2, "d_model": 32}),
}
STEPS, BATCH, RATE = 1500, 64, 3e-3
ENOUGH = 1e-4  # excess loss at which training stops
WORDS = 1 << 16  # of the longest length; two letters: length 16
WALKS = 500  # random words of AALpy's oracle for each hypothesis: its default


def tomita_3(state: str, letter: str) -> str:
    """An odd number of ones is never followed by an odd number of zeros."""
    moves = {"even": "eo", "odd": "ze", "zeros": "yx", "pairs": "zo", "dead": "xx"}
    names = {"e": "even", "o": "odd", "z": "zeros", "y": "pairs", "x": "dead"}
    return names[moves[state]["01".index(letter)]]


def dyck(state: int, letter: str) -> int:
    """The number of open brackets, at most 3; -1 after a mistake."""
    after = state + (1 if letter == "(" else -1)
    return after if state >= 0 and 0 <= after <= 3 else -1


def family(name: str) -> v.Automaton:
    """Return an automaton of a family, by name."""
    spec = v.read(name)
    assert isinstance(spec, v.Automaton)
    return spec


def languages() -> dict[str, tuple[v.Automaton, str]]:
    """Return the languages by name: the minimal automaton, and whether nets say `accept` or name `states`."""
    regular = v.Automaton.from_regex
    explore = v.Automaton.explore
    accepted = {
        "Tomita 1": regular("1*", "01"),
        "Tomita 2": regular("(10)*", "01"),
        "Tomita 3": explore("even", "01", tomita_3, lambda state: state in ("even", "odd", "pairs")),
        "Tomita 4": explore(0, "01", lambda n, a: min(n + 1, 3) if a == "0" or n == 3 else 0, lambda n: n < 3),
        "Tomita 5": explore((0, 0), "01", lambda n, a: (n[0] ^ (a == "0"), n[1] ^ (a == "1")), lambda n: not any(n)),
        "Tomita 6": explore(0, "01", lambda n, a: (n + (1 if a == "0" else 2)) % 3, lambda n: n == 0),
        "Tomita 7": regular("0*1*0*1*", "01"),
        "parity": family("cyclic:2"),
        "mod 3": family("cyclic:3"),
        "mod 5": family("cyclic:5"),
        "(ab\\|ba)*": regular("(ab|ba)*"),
        "Dyck-1, depth 3": explore(0, "()", dyck, lambda depth: depth == 0),
    }
    flip_flop = explore(
        "0", ("w0", "w1", "read"), lambda q, a: q if a == "read" else a[-1], lambda q: q == "1", name=str
    )
    states = {
        "flip-flop": flip_flop,
        "S3, on 3 points": family("symmetric_group:3"),
        "S3": family("symmetric_group:3:regular"),
    }
    return {name: (spec.minimized(), "accept") for name, spec in accepted.items()} | {
        name: (spec, "states") for name, spec in states.items()
    }


@dataclass(frozen=True)
class EveryPrefix(Regular):
    """The same sequences, with a question before the first letter, too."""

    def draw(self, key: Array) -> Example:
        example = super().draw(key)
        return example._replace(weight=jnp.ones_like(example.weight))


class Stepped:
    """A net as AALpy runs a system: letter by letter."""

    num_queries = num_steps = num_cached_queries = 0

    def __init__(self, net: Any) -> None:
        self.weights, self.net = net, net.architecture

    def pre(self) -> None:
        self.cache, self.length = Cache(), 0
        self.last = self._run(0)

    def post(self) -> None:
        pass

    def _run(self, token: int) -> int:
        logits = self.net.forward(self.weights.prepared, np.array([[token]]), cache=self.cache)
        return int(np.asarray(logits)[0, -1].argmax())

    def step(self, letter: int | None) -> int:
        if letter is not None:
            self.length += 1
            if self.length > self.net.max_length:
                raise OverflowError
            self.last = self._run(letter + 1)
        return self.last

    def query(self, word: Sequence[int]) -> list[int]:
        self.pre()
        return [self.step(letter) for letter in word] or [self.step(None)]


def alone(net: Any) -> tuple[MooreMachine | None, float]:
    """Return what AALpy learns with its own oracle, None if it asks for longer words than the net reads; seconds."""
    start, longest = time.perf_counter(), net.architecture.max_length
    letters = list(range(len(net.architecture.inputs) - 1))
    system = Stepped(net)
    oracle = RandomWordEqOracle(letters, system, num_walks=WALKS, min_walk_len=1, max_walk_len=longest)
    try:
        learned = run_KV(letters, system, oracle, "moore", cache_and_non_det_check=False, print_level=0)
    except OverflowError:
        return None, time.perf_counter() - start
    return machine_of(learned, len(letters)), time.perf_counter() - start


def right_machine(spec: v.Automaton, net: Any) -> MooreMachine:
    """Return the machine of a language, with the answers of a net as codes."""
    symbols = net.architecture.output.symbols
    if net.architecture.output.kind == "transducer":
        answers = [int(state in spec.accepting) for state in range(len(spec.states))]
    else:
        answers = [symbols.index(state) for state in spec.states]
    order = [spec.initial, *(state for state in range(len(spec.states)) if state != spec.initial)]
    place = {state: index for index, state in enumerate(order)}
    table = tuple(tuple(place[target] for target in spec.transitions[state]) for state in order)
    return MooreMachine(table, tuple(answers[state] for state in order)).minimized()


def examined(weights: Any, spec: v.Automaton, length: int) -> dict[str, Any]:
    """Return what is found about one trained net."""
    net = answering_after_every_letter(weights)
    observations = Observations(net, SearchBudget(1 << 22))
    observations.complete_to(length)
    right = right_machine(spec, net)
    word = observations.first_difference(right)
    start = time.perf_counter()
    result = v.extract(weights)
    row: dict[str, Any] = {"seconds": time.perf_counter() - start, "states": len(result.spec.states)}
    row |= {"known": result.known, "verdict": result.evidence.verdict, "margin": float(observations.smallest)}
    if word is None:
        complete = [
            d.longest for d in result.evidence.domains if d.kind == "words" and result.evidence.verdict == "holds"
        ]
        same = right_machine(result.spec, net) == right and len(result.spec.states) == len(right.answers)
        row["right"], row["minimal"] = True, same and complete == [length]
        machine, seconds = alone(net)
        return row | {"alone": machine is not None and machine == right, "alone seconds": seconds}
    symbols = [net.architecture.inputs[letter + 1] for letter in word]
    answer = int(weights(symbols)[-1].argmax())
    state = spec.run(symbols)[-1]
    wanted = ("no", "yes")[state in spec.accepting_states] if net.architecture.output.kind == "transducer" else state
    confirmed = weights.architecture.output.symbols[answer] != wanted
    return row | {"right": False, "wrong word": symbols, "confirmed": confirmed}


def measured(name: str, model: str, seeds: int) -> dict[str, Any]:
    """Train the nets of a row, and return what is found about them."""
    spec, mode = languages()[name]
    length = int(np.log(WORDS) / np.log(len(spec.alphabet)) + 1e-9)
    models, sizes = MODELS[model]
    start = time.perf_counter()
    recipe = v.Recipe(steps=STEPS, batch=BATCH, lr=RATE, stop=ENOUGH)
    runs = v.train(v.model(models, **sizes), EveryPrefix(spec, length=length, mode=mode), members=seeds, recipe=recipe)  # type: ignore[arg-type]
    trained = time.perf_counter() - start
    nets = [examined(run.weights, spec, length) for run in runs]
    about = {"language": name, "model": model, "letters": len(spec.alphabet), "length": length}
    return about | {"states": len(spec.states), "training seconds": trained, "nets": nets}


def line(row: dict[str, Any]) -> str:
    """Return a row of the table."""
    nets = row["nets"]
    good, bad = [n for n in nets if n["right"]], [n for n in nets if not n["right"]]
    lengths = sorted(len(n["wrong word"]) for n in bad)
    span = "–".join(map(str, dict.fromkeys(lengths[:1] + lengths[-1:])))
    cells = [row["language"], row["model"], row["states"], row["length"], f"{len(good)} of {len(nets)}"]
    cells += [f"{sum(n['minimal'] for n in good)} of {len(good)}" if good else "–"]
    cells += [f"{median(n['seconds'] for n in nets):.1f}"]
    cells += [
        f"{sum(n['alone'] for n in good)} of {len(good)}, {median(n['alone seconds'] for n in good):.1f} s"
        if good
        else "–"
    ]
    cells += [f"{sum(n['confirmed'] for n in bad)} of {len(bad)}, length {span}" if bad else "–"]
    return "| " + " | ".join(map(str, cells)) + " |"


HEAD = (
    "language",
    "nets",
    "states",
    "length n",
    "right on all words to n",
    "extracted: minimal, certified to n",
    "median seconds of `extract`, all nets",
    "AALpy alone, right nets: minimal, median seconds",
    "wrong nets: shortest wrong word confirmed, its length",
)


def main() -> None:
    """Measure the rows that the file lacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, default=Path("build/extraction.jsonl"))
    parser.add_argument("--only", default="", help="languages, with commas")
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    rows = [json.loads(text) for text in options.file.read_text().splitlines()] if options.file.exists() else []
    chosen = [name for name in languages() if not options.only or name in options.only.split(",")]
    options.file.parent.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        for model in MODELS:
            if any((row["language"], row["model"]) == (name, model) for row in rows):
                continue
            rows.append(measured(name, model, options.seeds))
            with options.file.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(line(rows[-1]), flush=True)
    print("\n| " + " | ".join(HEAD) + " |\n|" + " --- |" * len(HEAD))
    print("\n".join(line(row) for row in rows))


if __name__ == "__main__":
    main()
