"""Rows of sandboxes with words and tasks, drawn by plain NumPy from their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.rows_base import reference
from vitrify.sandboxes.associations import AssociationSandbox
from vitrify.sandboxes.composition import CompositionSandbox
from vitrify.sandboxes.copying import CopyingSandbox
from vitrify.sandboxes.counting import Counting
from vitrify.sandboxes.dyck import DyckSandbox
from vitrify.sandboxes.facts import EOS, FactRecall
from vitrify.sandboxes.k_hop import KHopSandbox
from vitrify.sandboxes.kit.counted import BitSandbox, Letters
from vitrify.sandboxes.knowledge import BLANK, KnowledgeSandbox
from vitrify.sandboxes.match import Match
from vitrify.sandboxes.medley import Medley
from vitrify.sandboxes.modular import Modular
from vitrify.sandboxes.multi_hop import MultiHop
from vitrify.sandboxes.pcfg import Pcfg
from vitrify.sandboxes.recall import RecallSandbox
from vitrify.sandboxes.regular import Regular
from vitrify.sandboxes.scenes import Scenes
from vitrify.sandboxes.shuffle_dyck import ShuffleDyck
from vitrify.sandboxes.sparse_averaging import SparseAveragingSandbox
from vitrify.spec.grammars.grammar import END
from vitrify.spec.memory.knowledge import SLOT


@reference.register
def _(sandbox: BitSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    place = np.arange(sandbox.longest)
    length = rng.integers(sandbox.shortest, sandbox.longest + 1, size=(count, 1))
    top = length if sandbox.max_ones is None else np.minimum(length, sandbox.max_ones)
    ones = rng.integers(sandbox.min_ones, top + 1)
    order = np.argsort(np.where(place < length, rng.random((count, sandbox.longest)), 2.0), axis=1)
    tokens = np.full((count, sandbox.tokens), 3)
    tokens[:, :-1] = np.where(place < length, np.argsort(order, axis=1) < ones, 3)
    tokens[np.arange(count), length[:, 0]] = 2
    answers = sandbox.answer(np.cumsum(tokens[:, :-1] == 1, axis=1), place + 1)
    targets = np.zeros((count, sandbox.tokens + 1), dtype=np.int64)
    if sandbox.scored == "all":
        targets[:, 1:-1] = np.where(place < length, answers, 0)
    else:
        targets[np.arange(count), length[:, 0] + 1] = np.take_along_axis(answers, length - 1, axis=1)[:, 0]
    return tokens, targets


@reference.register
def _(sandbox: Letters, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    place = np.arange(sandbox.tokens)
    length = rng.integers(sandbox.shortest, sandbox.longest + 1, size=(count, 1))
    laws = np.cumsum(rng.dirichlet(np.ones(sandbox.states), size=count), axis=1)[:, None, :-1]
    letters = (rng.random((count, sandbox.tokens, 1)) >= laws).sum(axis=2)
    tokens = np.where(place < length, letters, sandbox.states + (place > length))
    targets = np.zeros((count, sandbox.tokens + 1), dtype=np.int64)
    for row, word in enumerate(tokens):
        often = np.bincount(word[: length[row, 0]], minlength=sandbox.states)
        targets[row, length[row, 0] + 1] = sandbox.answer(often)
    return tokens, targets


@reference.register
def _(sandbox: CompositionSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    n, rows = sandbox.size, np.arange(count)
    values = rng.integers(n, size=(count, 2 * n))
    entries = np.arange(2 * n) * n + values
    x = rng.integers(n, size=count)
    tokens = np.concatenate([rng.permuted(entries, axis=1), 2 * n * n + x[:, None]], axis=1)
    targets = np.zeros((count, sandbox.tokens + 1), dtype=np.int64)
    targets[:, -1] = values[rows, n + values[rows, x]]
    return tokens, targets


@reference.register
def _(sandbox: CopyingSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    tokens = np.full((count, sandbox.tokens), sandbox.states + 1)
    targets = np.zeros((count, sandbox.tokens + 1), dtype=np.int64)
    for row in range(count):
        length = int(rng.integers(sandbox.shortest, sandbox.longest + 1))
        text = 1 + rng.choice(sandbox.states, size=length, replace=not sandbox.distinct)
        again = {"copy": text, "reverse": text[::-1], "sort": np.sort(text)}[sandbox.mode]
        tokens[row, : 2 * length + 1] = [*text, 0, *again]
        targets[row, length + 1 : 2 * length + 1] = again
    return tokens, targets


@reference.register
def _(sandbox: KHopSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    every = np.arange(count)
    tokens = rng.integers(sandbox.states, size=(count, sandbox.length))
    find = np.zeros((count, sandbox.length + 1), dtype=np.int64)
    behind = np.zeros((count, sandbox.states), dtype=np.int64)  # the place behind the last occurrence, or 0
    targets = np.zeros((count, sandbox.length + 1), dtype=np.int64)
    for t in range(1, sandbox.length + 1):
        if t > 1:
            behind[every, tokens[:, t - 2]] = t
        at = find[:, t] = behind[every, tokens[:, t - 1]]
        for _ in range(sandbox.hops - 1):
            at = find[every, at]
        targets[:, t] = np.where(at > 0, tokens[every, at - 1] + sandbox.shift, 0)
    return tokens, targets


@reference.register
def _(sandbox: Match, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    n, rows, place = sandbox.length, np.arange(count)[:, None], np.arange(sandbox.length)
    before = rng.integers(sandbox.modulus, size=(count, n))
    if sandbox.task == "match3-local":
        low, high = np.maximum(place - sandbox.reach, 0), np.minimum(place + sandbox.reach + 1, n)
        one, two = rng.integers(low, high, size=(2, count, n))
        total = before[rows, one] + before[rows, two]
    elif sandbox.task == "match3-bigram":
        at = rng.integers(n - 1, size=(count, n))
        total = before[rows, at] + before[rows, at + 1]
    else:
        total = before[rows, rng.integers(n, size=(count, n))]
    tokens = np.where(rng.random((count, n)) < sandbox.planted, -total % sandbox.modulus, before)
    yes = np.zeros((count, n), dtype=bool)
    for j in range(n):
        others = {"match2": [j], "match3-bigram": [j + 1] if j + 1 < n else [], "match3-local": range(j, n)}
        for k in others[sandbox.task]:
            total = tokens[:, [j]] + (tokens[:, [k]] if sandbox.task != "match2" else 0)
            near = max(0, k - sandbox.reach), j + sandbox.reach + 1  # who reaches both
            here = slice(*near) if sandbox.task == "match3-local" else slice(None)
            yes[:, here] |= (tokens[:, here] + total) % sandbox.modulus == 0
    return tokens, np.pad(yes.astype(np.int64), ((0, 0), (1, 0)))


@reference.register
def _(sandbox: RecallSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    every, told = np.arange(count), 2 * sandbox.pairs
    tokens = rng.integers(sandbox.vocabulary if sandbox.filler == "random" else 1, size=(count, sandbox.length))
    targets = np.zeros((count, sandbox.length + 1), dtype=np.int64)
    keys = 1 + np.argsort(rng.random((count, sandbox.keys)), axis=1)[:, : sandbox.pairs]
    left = np.tile(sandbox.shares(), (count, 1))
    for pair in range(sandbox.pairs):
        bounds = np.cumsum(left, axis=1)
        spot = (rng.random((count, 1)) * bounds[:, -1:] >= bounds).sum(axis=1)
        left[every, spot] = 0.0
        value = rng.integers(len(sandbox.answers), size=count)
        tokens[:, 2 * pair], tokens[:, 2 * pair + 1] = keys[:, pair], value + sandbox.vocabulary // 2
        tokens[every, told + 2 * spot], targets[every, told + 2 * spot + 1] = keys[:, pair], value
    return tokens, targets


@reference.register
def _(sandbox: SparseAveragingSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    vectors = rng.integers(len(sandbox.answers), size=(count, sandbox.length))
    sets = rng.integers(len(sandbox._pointers), size=(count, sandbox.length))
    one = sandbox._pointers[sets, rng.integers(sandbox.sparsity, size=sets.shape)]
    targets = np.take_along_axis(vectors, one, axis=1)
    return vectors * len(sandbox._pointers) + sets, np.pad(targets, ((0, 0), (1, 0)))


@reference.register
def _(sandbox: Modular, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    numbers = rng.integers(sandbox.modulus, size=(count, sandbox.terms))
    if sandbox.part != "all":
        numbers = sandbox.questions[rng.integers(len(sandbox.questions), size=count)].astype(np.int64)
    result = numbers[:, 0]
    for term in numbers[:, 1:].T:
        result = {"+": result + term, "-": result - term, "*": result * term}[sandbox.operation] % sandbox.modulus
    tokens, targets = (
        np.full((count, sandbox.tokens), sandbox.modulus),
        np.zeros((count, sandbox.tokens + 1), dtype=np.int64),
    )
    tokens[:, ::2], tokens[:, -1], targets[:, -1] = numbers, sandbox.modulus + 1, result
    return tokens, targets


@reference.register
def _(sandbox: KnowledgeSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    word, value = ({name: k for k, name in enumerate(names)} for names in (sandbox.symbols, sandbox.answers))
    tokens = np.full((count, sandbox.tokens), word[BLANK])
    targets = np.zeros((count, sandbox.tokens + 1), dtype=np.int64)
    tasks = rng.integers(max(round(sandbox.task_fraction * len(sandbox.known.tasks)), 1), size=count)
    asked = [where for where, kept in zip(sandbox.known.queries.values(), sandbox._kept, strict=True) if kept]
    own = [[where[1:] for where in asked if where[0] == task] for task in range(len(sandbox.known.tasks))]
    chosen = [own[task][rng.integers(len(own[task]))] for task in tasks]
    drawn, group = np.unique(np.concatenate([tasks[None], np.array(chosen).T]), axis=1, return_inverse=True)
    for number, (task, template, fact) in enumerate(drawn.T):
        words = sandbox.known.tasks[task].templates[template]
        key, answer = sandbox.known.tasks[task].facts[fact]
        slot, rows = words.index(SLOT), np.flatnonzero(group == number)
        query = (*words[:slot], *key, *words[slot + 1 :])
        tokens[rows, : len(query)] = [word[part] for part in query]
        targets[rows, len(query)] = value[answer]
    return tokens, targets


@reference.register
def _(sandbox: FactRecall, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    spec, symbols = sandbox.spec, {word: number for number, word in enumerate(sandbox.symbols)}
    fact = rng.integers(max(round(sandbox.fact_fraction * len(spec.facts)), 1), size=count)
    first = len(spec.vocabulary) - len(spec.fillers)
    tokens = rng.integers(first, max(len(spec.vocabulary), first + 1), size=(count, sandbox.length)).astype(np.int32)
    places = rng.permuted(np.tile(np.arange(sandbox.length - 1), (count, 1)), axis=1)[:, :2]
    for column in (0, 1):
        word = np.array([symbols[names[column]] for names in spec.facts])
        tokens[np.arange(count), places[:, column]] = word[fact]
    tokens[:, -1] = symbols[EOS]
    targets = np.zeros((count, sandbox.length + 1), dtype=np.int32)
    targets[:, -1] = np.array([sandbox.answers.index(a) for _, _, a in spec.facts])[fact]
    return tokens, targets


@reference.register
def _(sandbox: AssociationSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    tokens = rng.integers(round(sandbox.word_fraction * sandbox.words), size=(count, 1)).astype(np.int32)
    return tokens, np.pad(tokens, ((0, 0), (1, 0)))


@reference.register
def _(sandbox: MultiHop, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    named = rng.permuted(np.tile(np.arange(sandbox.names), (count, 1)), axis=1)
    named = named[:, : sandbox.chains * (sandbox.hops + 1)].reshape(count, sandbox.chains, sandbox.hops + 1)
    pairs = np.stack([named[..., :-1], named[..., 1:]], axis=-1).reshape(count, -1, 2)
    order = rng.permuted(np.tile(np.arange(pairs.shape[1]), (count, 1)), axis=1)
    if sandbox.rounds:  # a step's number is that of its chain, times hops, and that of its round
        order = np.take_along_axis(order, np.argsort(order % sandbox.hops, axis=1, kind="stable"), axis=1)
    mixed = np.take_along_axis(pairs, order[..., None], axis=1).reshape(count, -1)
    asked = rng.integers(sandbox.chains, size=count)
    tokens = np.concatenate([mixed, named[np.arange(count), asked, :1]], axis=1).astype(np.int32)
    targets = np.zeros((count, sandbox.tokens + 1), dtype=np.int32)
    targets[:, -1] = named[np.arange(count), asked, -1]
    return tokens, targets


@reference.register
def _(sandbox: Scenes, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    scene, plan = sandbox.shown, sandbox.layout
    images = np.full((count, *scene.image), scene.background)
    labels = rng.integers(len(sandbox.answers), size=count)
    extras = np.array([len(some) for some in plan.extras])[labels]
    which = np.where((rng.random(count) < 0.5) & (extras > 0), rng.integers(np.maximum(extras, 1)), -1)
    for label, extra in np.unique(np.stack([labels, which], axis=1), axis=0):  # images with the same features
        rows = np.flatnonzero((labels == label) & (which == extra))
        names = [name for name in plan.members[label] if name >= 0]
        names += [plan.extras[label][extra]] if extra >= 0 else []
        order = rng.permuted(np.tile(np.arange(plan.cells[0] * plan.cells[1]), (len(rows), 1)), axis=1)
        for name, cell in zip(names, order.T, strict=False):
            row = cell // plan.cells[1] * plan.pitch[0] + rng.integers(plan.room[name][0], size=len(rows))
            column = cell % plan.cells[1] * plan.pitch[1] + rng.integers(plan.room[name][1], size=len(rows))
            for part, down, right in scene.parts(plan.names[name]):
                grids = np.array(dict(scene.features)[part])
                chosen = grids[rng.integers(len(grids), size=len(rows))]
                for r, c in np.ndindex(*scene.size):
                    images[rows, row + down + r, column + right + c] = chosen[:, r, c]
    images += rng.uniform(-scene.noise, scene.noise, size=images.shape)
    return images.reshape(count, -1), labels[:, None]


@reference.register
def _(sandbox: Medley, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    task = sandbox.tasks[int(sandbox.task)]
    tokens, targets = reference(task, rng, count)
    more = ((0, 0), (0, sandbox.tokens - task.tokens))
    return np.pad(tokens, more, constant_values=len(sandbox.symbols) - 1), np.pad(targets, more)


@reference.register
def _(sandbox: Counting, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    words = sandbox.words[rng.integers(sandbox.max_count, size=count)].astype(np.int32)
    return words[:, :-1], words


@reference.register
def _(sandbox: DyckSandbox, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    law, each = np.asarray(sandbox.law()), np.arange(count)
    stack, height = np.zeros((count, sandbox.depth + 1), dtype=np.int32), np.zeros(count, dtype=np.int64)
    found = np.empty((count, sandbox.length), dtype=np.int32)
    for t in range(sandbox.length):
        opens = rng.random(count) < law[t, height]
        kind = rng.integers(sandbox.kinds, size=count)
        found[:, t] = np.where(opens, 2 * kind, 2 * stack[each, height] + 1)
        height += np.where(opens, 1, -1)
        stack[each[opens], height[opens]] = kind[opens]
    return found[:, :-1], found


@reference.register
def _(sandbox: ShuffleDyck, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    heights, found = np.zeros((count, sandbox.kinds), dtype=np.int32), np.empty((count, sandbox.length), dtype=np.int32)
    for t in range(sandbox.length):
        weights = (1 - sandbox.opening) * (heights > 0) / np.maximum((heights > 0).sum(axis=1, keepdims=True), 1)
        law = np.stack([np.full_like(weights, sandbox.opening / sandbox.kinds), weights], axis=-1).reshape(count, -1)
        sums = np.cumsum(law, axis=1)
        found[:, t] = (rng.random((count, 1)) * sums[:, -1:] >= sums[:, :-1]).sum(axis=1)
        heights[np.arange(count), found[:, t] // 2] += 1 - 2 * (found[:, t] % 2)
    return found[:, :-1], found


@reference.register
def _(sandbox: Regular, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    table, letters = sandbox.automaton.table, np.empty((count, sandbox.length), dtype=np.int32)
    if sandbox.mode != "generate":
        letters = rng.integers(table.shape[1], size=(count, sandbox.length), dtype=np.int32)
        states = sandbox.automaton.run_batch(letters)
        right = states if sandbox.mode == "states" else np.isin(states, list(sandbox.automaton.accepting))
        return letters, right.astype(np.int32)
    state = np.full(count, sandbox.automaton.initial)
    for t in range(sandbox.length):
        sums = np.cumsum(sandbox._counts[t + 1][table], axis=1)
        letters[:, t] = (rng.random((count, 1)) * sums[state, -1:] >= sums[state, :-1]).sum(axis=1)
        state = table[state, letters[:, t]]
    return letters[:, :-1], letters


@reference.register
def _(sandbox: Pcfg, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    number = {word: k for k, word in enumerate(sandbox.symbols)}
    found = np.full((count, sandbox.length), number[END], dtype=np.int32)
    for row, words in zip(found, sandbox.proper.sample(count, int(rng.integers(2**31))), strict=True):
        row[: len(words)] = [number[word] for word in words[: sandbox.length]]
    return found[:, :-1], found
