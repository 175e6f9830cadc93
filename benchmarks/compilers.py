"""Tracr and torchwright on the programs of our library, where they are installed: the same tasks, run on random words.

Tracr is asked what its own interpreter says, position by position, as its library defines some tasks differently from
ours; where the interpreter says None nothing is asked. torchwright is asked for what our programs say.
"""

from __future__ import annotations

import importlib.util
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vitrify.spec.programs.program import Program

Run = Callable[[Sequence[int]], tuple[list[Any], list[Any]]]  # a word of numbers: what is wanted, what is found


@dataclass(frozen=True)
class Rival:
    """A net of another compiler."""

    width: int
    parameters: int
    seconds: float
    run: Run

    def wrong(self, words: Sequence[Sequence[int]]) -> int:
        """On how many words some position is wrong."""
        return sum(any(map(_differ, *self.run(word))) for word in words)


def _differ(wanted: Any, found: Any) -> bool:
    if wanted is None:
        return False
    if isinstance(wanted, str):
        return bool(wanted != found)
    return abs(float(wanted) - float(found)) > 1e-3


def installed(peer: str) -> bool:
    """Whether a compiler can be run here."""
    return importlib.util.find_spec(peer) is not None


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Give up with a TimeoutError after so many seconds."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def rival(peer: str, spec: Program, limit: int) -> Rival | str | None:
    """The net of another compiler for a program of ours, or why there is none; None if it can't say the task."""
    makers = {"tracr": _tracr, "torchwright": _torchwright}
    if not installed(peer):
        return "not installed"
    try:
        with limited(limit):
            return makers[peer](spec)
    except TimeoutError as error:
        return str(error)


def _tracr(spec: Program) -> Rival | None:
    """Symbols are the numbers from 1; brackets are letters, opening ones lower case."""
    import jax
    from tracr.compiler import compiling, lib
    from tracr.rasp import rasp

    letters, length, tokens = len(spec.alphabet), spec.length, rasp.tokens
    symbols: list[Any] = list(range(1, letters + 1))
    brackets = [chr(ord("Aa"[k % 2]) + k // 2) for k in range(1, letters + 1)]
    makers: dict[str, Callable[[], Any]] = {
        "length": lib.make_length,
        "reverse": lambda: lib.make_reverse(tokens),
        "histogram": lib.make_hist,
        "count": lambda: lib.make_count(tokens, 1),
        "shift": lambda: lib.shift_by(1, tokens),
        "sort": lambda: lib.make_sort(tokens, tokens, max_seq_len=length, min_key=1),
        "sort unique": lambda: lib.make_sort_unique(tokens, tokens),
        "sort by frequency": lambda: lib.make_sort_freq(length),
        "dyck1": lambda: lib.make_shuffle_dyck(["".join(brackets[:2])]),
        "shuffle dyck": lambda: lib.make_shuffle_dyck(["".join(brackets[k : k + 2]) for k in range(0, letters, 2)]),
        "three arguments": lambda: lib.make_nary_sequencemap(
            lambda t, i, n: (t * i + n) % 5, tokens, rasp.indices, lib.length
        ),
    }
    if spec.name not in makers:
        return None
    if "dyck" in spec.name:
        symbols = brackets
    program = makers[spec.name]()
    begin = time.perf_counter()
    model = compiling.compile_rasp_to_model(program, vocab=set(symbols), max_seq_len=length, compiler_bos="<s>")
    seconds = time.perf_counter() - begin

    def run(word: Sequence[int]) -> tuple[list[Any], list[Any]]:
        asked = [symbols[i] for i in (dict.fromkeys(word) if spec.name == "sort unique" else word)]
        return list(program(asked)), list(model.apply(["<s>", *asked]).decoded)[1:]

    sizes = sum(leaf.size for leaf in jax.tree_util.tree_leaves(model.params))
    return Rival(len(model.residual_labels), sizes, seconds, run)


def _torchwright(spec: Program) -> Rival | None:
    """The smallest width that compiles; counts are rounded outside; the table of embeddings is not counted."""
    import torch
    from torchwright.compiler.forward.compile import forward_compile
    from torchwright.graph import Linear
    from torchwright.ops.attention_ops import attend_causal_mean, attend_to_offset
    from torchwright.ops.inout_nodes import create_onehot_embedding, create_rope_config
    from torchwright.ops.linear import slice_columns, subtract
    from torchwright.ops.relu.logic_ops import bool_all_true
    from torchwright.ops.relu.marker_count import count_since_marker

    alphabet, length, head = spec.alphabet, spec.length, 16
    places = {symbol: place for place, symbol in enumerate(("<s>", *alphabet))}

    def flag(embedding: Any, symbols: Sequence[str], low: float = 0.0) -> Any:
        """1 at some symbols, and `low` elsewhere."""
        matrix = torch.zeros((len(alphabet) + 1, 1))
        matrix[[places[symbol] for symbol in symbols], 0] = 1.0 - low
        return Linear(embedding, matrix, torch.tensor([low]))

    def graph() -> Any:
        embedding = create_onehot_embedding(["<s>", *alphabet])
        rope = create_rope_config(d_head=head, max_positions=length + 1)

        def counted(symbol: str) -> Any:
            valid = flag(embedding, ["<s>", symbol], -1.0)
            return count_since_marker(rope, valid, slice_columns(embedding, 0, 1), max_gap=length)

        if spec.name == "running count":
            return counted(alphabet[0])
        if spec.name == "pair balance":
            return subtract(counted(alphabet[0]), counted(alphabet[1]))
        if spec.name == "fraction of previous":
            return attend_causal_mean(rope, flag(embedding, alphabet[:1]))
        if spec.name == "shift":
            return attend_to_offset(rope, embedding, -1)
        if spec.name == "detect":
            wanted = [alphabet[0], alphabet[1], alphabet[0]]
            found = [flag(embedding, [symbol], -1.0) for symbol in wanted]
            return bool_all_true([attend_to_offset(rope, found[k], k - 2) for k in range(3)])
        return None

    def read(values: Any) -> list[Any]:
        if spec.name == "shift":
            heard = [("<s>", *alphabet)[i] for i in values.argmax(dim=1).tolist()]
            return [None if symbol == "<s>" else symbol for symbol in heard]
        numbers = values.flatten().tolist()
        if spec.name == "fraction of previous":  # a mean over the beginning too
            return [number * (t + 1) / max(t, 1) for t, number in enumerate(numbers)]
        return [number > 0 if spec.name == "detect" else round(number) for number in numbers]

    torch.set_grad_enabled(False)
    if graph() is None:
        return None
    for width in range(head, 1024 + 1, head):
        output = graph()
        begin = time.perf_counter()
        try:
            net = forward_compile(width, head, output, verbose=False, device="cpu")
        except (RuntimeError, ValueError):
            continue
        seconds = time.perf_counter() - begin

        def run(word: Sequence[int], net: Any = net, output: Any = output) -> tuple[list[Any], list[Any]]:
            asked = [alphabet[i] for i in word]
            values = net.compute(len(asked) + 1, {"embedding_input": ["<s>", *asked]})[output]
            return list(spec(asked)), read(values)[1:]

        return Rival(width, sum(layer.num_params() for layer in net.layers), seconds, run)
    return None
