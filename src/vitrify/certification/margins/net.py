r"""Margins of a built net: a proof for every word up to its maximum length, from the weights and the labels alone.

The residual stream is followed from the embedding to the logits as sets of values (`values.py`). For all words at
once it is proved by how much the keys of every head win, and that every named space stays near a legal value. So the
net computes, up to that error, what its *ideal* does: the same net with exact selection and exact values. That the
ideal computes the spec is not proved here: the check of all short words shows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from vitrify.arrays import Arrays, Floats, Ints, Matrix
from vitrify.certification.margins import values
from vitrify.certification.margins.heads import Written, averaged, check_target, selected, selection_of, target_of
from vitrify.certification.margins.legal import legal
from vitrify.certification.margins.proof import HeadMargin, Proof, SpaceMargin
from vitrify.certification.margins.rounding import ValuePath, embedding_error, pads_fit
from vitrify.certification.margins.scores import Scores
from vitrify.certification.margins.units import UnitLayer, case_by_case, one_by_one, table, within
from vitrify.certification.margins.values import ROUNDOFF, Stretch, Undecided, ValueFactor, at_pads, distinct, reads
from vitrify.certification.oracles.right import Oracle
from vitrify.certification.precision.formats import FLOAT64, Format
from vitrify.certification.precision.rounding import bounded_stream
from vitrify.net.architecture import Architecture, Output
from vitrify.net.labels import HeadLabel, SpaceLabel
from vitrify.net.positions import tabulated
from vitrify.net.sparse import dense, is_sparse
from vitrify.net.transformer import Transformer
from vitrify.net.unrolled import unrolled
from vitrify.net.weights import Weights, has_architecture

MAX_COMBINATIONS = 1 << 15  # of values, enumerated for a whole space at once
MAX_JOINT_COMBINATIONS = 1 << 12  # that are enumerated before coordinates of whole numbers are tried one by one
MAX_TRACKED_UNITS = 1 << 10  # the output of more units is only bounded, where bounds are enough
MIN_PROVED_ERROR = 1e-9  # the error up to which probabilities and numbers of any net count as proved
MAX_COMPUTED_POSITIONS = 1 << 13  # of a net without a table of positions, which may have any maximum length
MAX_JOINT_DIMS = 16  # dimensions of a space that are followed together


def margins(
    weights: Weights[Architecture],
    *,
    language: bool = False,
    longest: int | None = None,
    allowed: float = np.inf,
    arithmetic: Format | None = None,
) -> Proof:
    """Prove the margins of a built net for all words up to `longest`, or say where that fails.

    With `language`, the words are those of a language that keeps the net's whole numbers within the ranges of their
    labels; the proof then rests on that, and says so. Numbers and probabilities that may be off by more than `allowed`
    are not proved. The proof is about runs in float64, in any order of summation; with an `arithmetic`, about a run in
    which every number is of that format, stored weights included, and then the likeliest next symbol must keep a
    margin and numbers must be right, too.
    """
    start = time.perf_counter()
    run = _MarginRun(language, longest, allowed, arithmetic or FLOAT64, arithmetic is not None)
    reason = None
    try:
        run.all(_covered(weights))
    except Undecided as stop:
        reason = str(stop)
    return Proof(
        max_length=_up_to(longest, getattr(weights.architecture, "max_length", 0)),
        heads=tuple(run.heads),
        spaces=tuple(run.spaces),
        error=run.error,
        margin=run.margin,
        reason=reason,
        assumed=tuple(run.assumed),
        seconds=time.perf_counter() - start,
    )


def proof_of(weights: Weights[Architecture], oracle: Oracle) -> Proof:
    """Prove a net for the words of its oracle, as exactly as the oracle wants answers to be.

    A bound on all rounding errors of all words is larger than what runs show: it need not be smaller than `PROVED`.
    """
    allowed = max(oracle.tolerance(), MIN_PROVED_ERROR)
    return margins(weights, language=oracle.language is not None, longest=oracle.longest, allowed=allowed)


def _up_to(longest: int | None, max_length: int) -> int:
    """Return the length of the longest word that a proof is about: of a language, as far as the net reads it."""
    return max_length if longest is None else min(longest, max_length)


def _covered(weights: Weights[Architecture]) -> Weights:
    """Return the net, without loops, if its margins can be worked out; refuse other architectures."""
    if not has_architecture(weights, Transformer) or weights.architecture.reads != "tokens":
        raise Undecided("margins are worked out for transformers that read tokens")
    if not weights.architecture.tabled and weights.architecture.positions > MAX_COMPUTED_POSITIONS:
        raise Undecided(f"margins are not worked out for {weights.architecture.positions:,} positions by formula")
    weights = unrolled(weights)
    net = weights.architecture
    if net.norm or net.residual != "add" or any(block.experts or block.cell for block in net.blocks):
        raise Undecided("margins are not worked out for norms, experts, recurrences and concatenating residuals")
    if net.only_learned:
        raise Undecided("margins are not worked out for heads with segments, rotary and linear ones")
    if net.looks_ahead and net.pads != 1:
        raise Undecided("a net that looks ahead behind several pads is not covered")
    return tabulated(weights)


@dataclass(eq=False)
class _MarginRun:
    """One pass through the net: the current values of pads and tokens, and the margins proved so far."""

    language: bool
    longest: int | None
    allowed: float
    arithmetic: Format
    keeps_answers: bool
    heads: list[HeadMargin] = field(default_factory=list)
    spaces: list[SpaceMargin] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    error: float | None = None
    margin: float | None = None

    def all(self, weights: Weights) -> None:
        net, arrays = weights.architecture, weights.arrays
        self.weights, self.net, self.labels = weights, net, weights.labels
        embed, placed = arrays["embed.W_E"], np.asarray(dense(arrays["pos_embed.W_pos"]))
        pads = placed[: net.pads] + np.asarray(dense(embed[[0]]))
        fmt = self.arithmetic
        self.pads = Stretch("pads", 0, pads, (), embedding_error(fmt, dense(embed[[0]]), placed[: net.pads]))
        words = embed[1:]
        used = np.flatnonzero(reads(words.T))
        part = words[:, used]
        points = part if is_sparse(part) else distinct(part)
        factors = (ValueFactor.of("token", used, points),) if len(used) and part.shape[0] else ()
        end = net.pads + _up_to(self.longest, net.max_length)
        placed = placed[net.pads : end]
        self.tokens = Stretch("tokens", net.pads, placed, factors, embedding_error(fmt, words, placed))
        self._known_pads()
        for index, block in enumerate(net.blocks):
            if block.heads:
                self._attention(index)
                self._see_pads(2 * index + 1)
            if block.units:
                self._mlp(index)
            self._see_pads(2 * index + 2)
        self._readout()

    def _put(self, stretch: Stretch) -> None:
        if stretch.name == "tokens":
            self.tokens = stretch
        else:
            self.pads = stretch

    # ---- pads: their activations are the same for every word, unless a head attends ahead
    def _known_pads(self) -> None:
        self.known: list[Floats] | None = None
        if self.net.looks_ahead:
            return
        self.known, _ = at_pads(self.weights)
        alone = np.zeros((1, self.net.pads), dtype=np.int64)
        # a longer word may round otherwise than this run, and both otherwise than exact arithmetic
        runs = (bounded_stream(self.weights, alone, fmt) for fmt in (self.arithmetic, FLOAT64))
        self.pad_error = [sum(error[0].max(axis=0) for _, error in steps) for steps in zip(*runs, strict=True)]

    def _see_pads(self, moment: int) -> None:
        if self.known is None:
            return
        self.pads = Stretch("pads", 0, self.known[moment], (), self.pad_error[moment])

    # ---- attention
    def _attention(self, index: int) -> None:
        block, prefix = self.net.blocks[index], f"blocks.{index}.attn."
        arrays = {k.removeprefix(prefix): v for k, v in self.weights.arrays.items() if k.startswith(prefix)}
        keys = (self.pads, self.tokens)
        queries = [self.tokens] if self.known is not None else [self.pads, self.tokens]
        after = {stretch.name: stretch for stretch in queries}
        for place in range(len(block.heads)):
            part = {k: arrays[k][place] for k in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")}
            relative = arrays["b_rel"][place] if "b_rel" in arrays else None
            part |= {"beta": float(arrays["beta"][place]), "b_rel": relative}
            label = next((h for h in self.labels.heads if (h.block, h.index) == (index, place)), None)
            for stretch in queries:
                written = self._head(index, place, label, part | {"every": arrays["W_O"]}, stretch, keys)
                if written is not None:
                    after[stretch.name] = self._summed(stretch, _added(after[stretch.name], *written), written[0])
        for stretch in queries:
            self._put(self._settle(after[stretch.name], 2 * index + 1))

    def _summed(self, before: Stretch, after: Stretch, dims: Ints) -> Stretch:
        """Return the residual stream after an addition to some dimensions: rounded where they were not empty."""
        full = dims[~before.empty(dims)]
        return after.holding((), full, self.arithmetic.roundoff * np.maximum(*map(np.abs, after.bounds()))[full])

    def _head(
        self, index: int, place: int, label: HeadLabel | None, part: Arrays, stretch: Stretch, keys: tuple[Stretch, ...]
    ) -> tuple[Ints, Written] | None:
        head = self.net.blocks[index].heads[place]
        name = label.name if label else f"head {index}.{place}"
        path = ValuePath(self.arithmetic, part, part["every"])
        if not len(path.dims):
            return None
        scores = Scores(head, part, stretch, keys, path.value, path.bias, self.arithmetic)
        if self.known is not None:
            pads_fit(self.arithmetic, self.pads, part)
        if label is not None and label.gap is None:
            selection, written, attends = None, averaged(name, scores, path), "fixed weights"
        else:
            selection = selection_of(scores)
            if label is not None and label.attends_to is not None and stretch.name == "tokens":
                check_target(name, label.attends_to, scores, selection)
            written, attends = selected(name, scores, selection, path), target_of(scores, selection)
        if stretch.name == "tokens":
            alone = selection is None or not np.isfinite(selection.gap)  # no other key is ever there
            gap = None if selection is None or alone else selection.gap
            kappa = None if gap is None else scores.largest / gap
            about = (attends, gap, kappa, scores.delta, written.leak, scores.fixed)
            self.heads.append(HeadMargin(name, index, place, *about))
        return path.dims, written

    # ---- the MLP
    def _mlp(self, index: int) -> None:
        arrays, prefix = self.weights.arrays, f"blocks.{index}.mlp."
        w_in, b_in, w_out, b_out = (arrays[prefix + name] for name in ("W_in", "b_in", "W_out", "b_out"))
        layer = UnitLayer(w_in, b_in, w_out, b_out, self.arithmetic)
        self.tokens = self._units(self.tokens, layer, 2 * index + 2)
        if self.known is None:
            self.pads = self._units(self.pads, layer, 2 * index + 2)
        else:
            layer.fits(self.pads)

    def _units(self, stretch: Stretch, layer: UnitLayer, moment: int) -> Stretch:
        clean, erased = layer.without_erasers(self.labels.spaces, moment)
        low, _ = stretch.bounds()
        for dim, least in erased.items():
            if low[dim] < least:
                raise Undecided(f"dimension {dim} may hold {low[dim]:.3g}, less than the unit that erases it allows")
        left = np.array([layer.leaves(stretch, dim, least) for dim, least in erased.items()])
        after = stretch.cleared(np.array(list(erased), dtype=np.int64), left) if erased else stretch
        born = [s for s in self.labels.spaces if s.born == moment]
        named = {dim for s in born for dim in s.dims}
        writes = set(np.flatnonzero(reads(clean.w_out.T) | (clean.b_out != 0)).tolist())
        if writes - named:
            raise Undecided(
                f"block {moment // 2 - 1} writes dimensions that no space is born in: {sorted(writes - named)[:5]}"
            )
        for label in born:
            after = self._written_by_units(label, stretch, after, clean)
        changed = np.array(sorted(writes | erased.keys()), dtype=np.int64)
        return self._settle(self._summed(stretch, after, changed), moment)

    def _written_by_units(self, label: SpaceLabel, before: Stretch, after: Stretch, layer: UnitLayer) -> Stretch:
        """Return the values of a space: as one factor, or as one for each coordinate; else within bounds."""
        dims, tag = list(label.dims), label.kind.tag
        whole, alone = [dims], [[dim] for dim in dims]
        most = values.MAX_POINTS if len(dims) == 1 else MAX_COMBINATIONS
        joint = tag in ("onehot", "bits", "circle", "flag") or len(dims) <= MAX_JOINT_DIMS
        ways = [(table, split, most) for split in ([whole, alone] if joint else [alone, whole])]
        units = layer.writers(dims)
        if tag == "reals" and len(units) > MAX_TRACKED_UNITS:
            ways = []
        if tag == "integers":
            ways = [(table, whole, MAX_JOINT_COMBINATIONS), (case_by_case, alone, MAX_COMBINATIONS), *ways]
        if tag in ("integers", "multihot", "flag"):
            ways.append((one_by_one, alone, MAX_COMBINATIONS))
        for values_of, split, most in ways:
            try:
                return self._split(values_of, label, before, after, layer, split, most)
            except Undecided as stop:
                reason = stop
        if tag != "reals":
            raise reason
        low, high, passed, rounded = within(before, layer, units, dims)
        return after.holding([ValueFactor.box(label.name, dims, low, high)], np.array(dims), passed + rounded)

    def _split(
        self,
        values_of: Callable[..., tuple[Floats, Floats]],
        label: SpaceLabel,
        before: Stretch,
        after: Stretch,
        layer: UnitLayer,
        split: list[list[int]],
        most: int,
    ) -> Stretch:
        """The values of a space as factors of some of its coordinates, by a function of the units that write them."""
        for group in split:
            points, error = values_of(label.name, before, layer, layer.writers(group), group, most)
            after = after.holding([ValueFactor.of(label.name, group, distinct(points))], np.array(group), error)
        return after

    # ---- after each half layer
    def _settle(self, stretch: Stretch, moment: int) -> Stretch:
        """Check the spaces born now, and drop those that can't be read any more."""
        for label in self.labels.spaces:
            if label.born != moment:
                continue
            stretch, note = legal(label, stretch, language=self.language)
            self.assumed += [note] if note and note not in self.assumed else []
            if stretch.name == "tokens":
                self.spaces.append(_margin(label, stretch))
        return stretch

    def _readout(self) -> None:
        """Bound the margin of the best answer, and the distance of the logits from those of the ideal net."""
        arrays, tokens = self.weights.arrays, self.tokens
        w_u, b_u, kind = arrays["unembed.W_U"], arrays["unembed.b_U"], self.net.output.kind
        error = tokens.moved(w_u) + self.arithmetic.linear(tokens, w_u, b_u, "the logits")
        self.error = float(error.max(initial=0.0))
        if kind in ("lm", "values"):
            answer_error = _answer_error(self.net.output, self.error)
            if not self.keeps_answers and answer_error > self.allowed:
                raise Undecided(f"answers may be off by {answer_error:.3g}, where {self.allowed:.3g} is allowed")
        if self.keeps_answers and kind == "values" and self.error > self.net.output.error:
            raise Undecided(f"numbers may be off by {self.error:.3g}, more than the {self.net.output.error:g} allowed")
        if kind == "values" or (kind == "lm" and not self.keeps_answers) or (kind != "next" and len(b_u) < 2):
            return
        if kind == "next":
            least = min(self._distance(w_u, b_u, symbol) - error[symbol] for symbol in range(len(b_u)))
        else:
            ideal = tokens.contents(w_u, most=MAX_COMBINATIONS)
            placed = distinct(tokens.at_places(w_u, b_u))
            if len(ideal) * len(placed) * len(b_u) > values.MAX_NUMBERS:
                raise Undecided(f"{len(ideal)} × {len(placed)} answers are too many to enumerate")
            best = np.partition((ideal[:, None] + placed[None]).reshape(-1, len(b_u)), -2, axis=1)[:, -2:]
            least = float((best[:, 1] - best[:, 0]).min()) - 2 * self.error
        self.margin = least
        if least <= 0:
            raise Undecided(
                f"the best answer may have no margin: {least + 2 * self.error:.3g}, errors {self.error:.3g}"
            )

    def _distance(self, w_u: Matrix, b_u: Floats, symbol: int) -> float:
        """Return the smallest distance of a logit from 0."""
        column = np.asarray(dense(w_u[:, [symbol]]))
        ideal = self.tokens.contents(column) + distinct(self.tokens.at_places(column, b_u[[symbol]])).T
        return float(np.abs(ideal).min())


def _answer_error(output: Output, error: float) -> float:
    """Return the largest error of an answer when no logit is off by more than `error`."""
    if output.kind == "values":
        return error
    with np.errstate(over="ignore"):
        return float({"softmax": np.tanh(error / 2), "log": np.expm1(error), "linear": np.inf}[output.scores])


def _added(stretch: Stretch, dims: Ints, written: Written) -> Stretch:
    places = stretch.places.copy()
    rounded = (places[:, dims] != 0) & (written.places != 0)
    places[:, dims] += written.places
    error = written.error + ROUNDOFF * np.where(rounded, np.abs(places[:, dims]), 0.0).max(axis=0)
    return replace(stretch, places=places).holding(written.factors, dims, error)


def _margin(label: SpaceLabel, stretch: Stretch) -> SpaceMargin:
    dims = np.array(label.dims, dtype=np.int64)
    return SpaceMargin(label, tuple(stretch.factors_of(dims)), stretch.places[:, dims], stretch.error[dims])
