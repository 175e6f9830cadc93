"""A second opinion on a model folder with a certificate, by code that shares nothing with what built and judged it.

It reads the files itself, runs the transformer by a plain forward pass of its own, and asks it about the whole domain
that the certificate states. It imports the specs, because they say what is right, and nothing else of vitrify.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, groupby, islice, product
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.errors import FolderError, VitrifyError
from vitrify.spec import read_spec

SCHEMA = 1
KEYS = {"schema", "tool", "sha256", "evidence", "mutations", "digest"}
EVIDENCE = {"verdict", "method", "domain", "cases", "witness", "declared", "measured", "seed", "notes", "proof"}
TIE, OFF = 1e-6, 1e-9  # a lead that rounding could decide; how far a probability or a number may be off
MOST_WORDS, MOST_ENTRIES, CELLS = 1 << 22, 1 << 27, 1 << 22  # tried; of a dense array; of the scores of one batch
RANDOM_WORDS, RANDOM_LENGTH = 16, 2048  # long words that are asked about beyond the stated domain


class Disagreement(Exception):
    """What does not agree, in a sentence."""


@dataclass
class Recheck:
    """What was found: a problem if something does not agree, what was done again, and what was not."""

    problem: str | None = None
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def recheck(folder: Path) -> Recheck:
    """Check a folder against its certificate, from scratch; FolderError where there is nothing that can be checked."""
    found = Recheck()
    try:
        _recheck(folder, found)
    except Disagreement as error:
        found.problem = str(error)
    except FolderError:
        raise
    except VitrifyError as error:
        found.problem = f"the spec can't be used: {error}"
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        found.problem = f"the files do not describe one network: {error!r}"
    except MemoryError:
        raise FolderError(f"{folder}: the network is too large to be checked here") from None
    return found


def _need(holds: object, sentence: str) -> None:
    if not holds:
        raise Disagreement(sentence)


def _recheck(folder: Path, found: Recheck) -> None:
    data = _certificate(folder)
    try:
        files = {name: (folder / name).read_bytes() for name in data["sha256"]}
    except OSError as error:
        raise Disagreement(f"a file of the certificate can't be read: {error}") from None
    changed = [name for name in files if hashlib.sha256(files[name]).hexdigest() != data["sha256"][name]]
    _need(not changed, f"{', '.join(changed)} changed since the certificate was written")
    config, labels = json.loads(files["config.json"]), json.loads(files["labels.json"])
    stale = [name for name, digest in config["sha256"].items() if data["sha256"].get(name) != digest]
    _need(not stale and config["spec"] in files, f"config.json was written for other files than these: {stale}")
    found.done.append(f"hashes of {len(files)} files and of the certificate")
    _claims(data["evidence"], data["mutations"])
    net = config["net"]
    plain = {"architecture": "transformer", "reads": "tokens", "norm": False, "residual": "add", "loops": 1}
    odd = [key for key, value in plain.items() if net[key] != value]
    odd += [key for block in net.get("blocks", ()) for key in ("experts", "cell") if block[key]]
    if odd:
        raise FolderError(f"{folder}: recheck runs plain transformers that read tokens; this net differs in {odd[0]}")
    arrays, meaning = _arrays(files["model.safetensors"], net), _meaning(read_spec(folder / config["spec"]), net)
    _heads(arrays, net, labels["heads"], data["evidence"]["proof"], found)
    _answers(arrays, net, meaning, data["evidence"]["domain"], found)
    found.left += ["the certificate's own random words and what it measured inside", "answers in lower precision"]
    found.left += ["the proof for all words"] * bool(data["evidence"]["proof"]) + ["mutations"] * bool(
        data["mutations"]
    )


def _certificate(folder: Path) -> dict[str, Any]:
    """The certificate, which must be the canonical text of a known schema, with the digest of itself."""
    path = folder / "certificate.json"
    if not path.is_file():
        raise FolderError(f"{folder} has no certificate.json: 'vitrify certify {folder}' writes one")
    try:
        text = path.read_bytes().decode()
        data = json.loads(text)
    except (OSError, ValueError) as error:
        raise Disagreement(f"certificate.json can't be read: {error}") from None
    _need(isinstance(data, dict), "certificate.json is not a certificate")
    digest = hashlib.sha256(_canonical({key: data[key] for key in data if key != "digest"}).encode()).hexdigest()
    _need(data.get("digest") == digest and _canonical(data) == text, "certificate.json changed since it was written")
    if data.get("schema") != SCHEMA:
        raise FolderError(f"{path} has schema {data.get('schema')!r}, this vitrify checks {SCHEMA}: certify again")
    _need(set(data) == KEYS and set(data["evidence"]) == EVIDENCE, "the certificate lacks parts, or has others")
    names = {re.sub(r"^spec\.[\w.]+$", "spec", name) for name in data["sha256"]}
    _need(names == {"config.json", "labels.json", "model.safetensors", "spec"}, "the certificate is about other files")
    return data


def _canonical(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _claims(evidence: dict[str, Any], broken: Any) -> None:
    """That what the certificate says fits together, wherever one part follows from another."""
    said, proof = evidence["verdict"], evidence["proof"]
    _need(said == "holds", f"the certificate itself says '{said}': {evidence['witness']}")
    _need(evidence["witness"] is None, "the certificate says that the net holds, and has a witness against it")
    parts, cases = [part for part in evidence["domain"].split("; ") if "real arithmetic" not in part], 0
    for part in parts:
        shape = re.fullmatch(r"all (\d+) .*|every prefix of (\d+) .*?(?:length (\d+))?", part)
        _need(shape, f"the domain {part!r} is none that vitrify asks about")
        cases += int(shape[1] or 0) + int(shape[2] or 0) * (int(shape[3] or 0) + 1)
    _need(cases <= evidence["cases"], f"the domain has at least {cases} cases, not {evidence['cases']}")
    methods = [name for name in evidence["method"].split("+") if not name.endswith("in reals")]
    rests = dict.fromkeys("exhaustive" if part.startswith("all ") else "sampled" for part in parts)
    rests |= {"proved": None} if proof and proof["holds"] and proof["reason"] is None else {}
    _need(methods == list(rests), f"the method is stated as {methods}, and what is there is {list(rests)}")
    error, allowed = evidence["measured"]["largest error"], evidence["declared"]["largest error"]
    _need(0 <= error <= allowed, f"an error of {error} was found, and {allowed} allowed")
    if broken is not None:
        survived = broken["tried"] - broken["rejected"]
        _need(len(broken["survivors"]) == survived, f"{survived} mutations survived, and not as many are listed")


def _arrays(content: bytes, net: dict[str, Any]) -> dict[str, Any]:
    """All arrays, dense."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        flat: dict[str, Any] = load(content)
    except SafetensorError as error:
        raise Disagreement(f"model.safetensors can't be read: {error}") from None
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    for name, shape in json.loads(header["__metadata__"]["vitrify"])["sparse"].items():
        if np.prod(shape) > MOST_ENTRIES:
            raise MemoryError
        values, columns, starts = (flat.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
        flat[name] = np.zeros((int(np.prod(shape[:-1])), shape[-1]))
        np.add.at(flat[name], (np.repeat(np.arange(len(starts) - 1), np.diff(starts)), columns), values)
        flat[name] = flat[name].reshape(shape)
    _need(all(np.isfinite(array).all() for array in flat.values()), "some weight is not a finite number")
    sizes = (len(net["inputs"]), net["max_length"] + net["pads"])
    _need(sizes == (len(flat["embed.W_E"]), len(flat["pos_embed.W_pos"])), "the embedding has not the network's size")
    return flat


def _block(arrays: dict[str, Any], index: int) -> dict[str, Any]:
    name = f"blocks.{index}."
    return {key.removeprefix(name): array for key, array in arrays.items() if key.startswith(name)}


def _forward(arrays: dict[str, Any], net: dict[str, Any], words: Any) -> Any:
    """Logits [word, prefix, symbol] of words of one length, given as numbers of symbols without the pads."""
    tokens = np.pad(words, ((0, 0), (net["pads"], 0)))
    x = arrays["embed.W_E"][tokens] + arrays["pos_embed.W_pos"][: tokens.shape[1]]
    for index, block in enumerate(net["blocks"]):
        a = _block(arrays, index)
        x = x + sum(_head(head, a, place, x) for place, head in enumerate(block["heads"]))
        if block["units"]:
            x = x + np.maximum(x @ a["mlp.W_in"] + a["mlp.b_in"], 0) @ a["mlp.W_out"] + a["mlp.b_out"]
    return (x @ arrays["unembed.W_U"] + arrays["unembed.b_U"])[:, net["pads"] - 1 :]


def _head(head: dict[str, Any], a: dict[str, Any], place: int, x: Any) -> Any:
    q, k, v = (x @ a[f"attn.W_{letter}"][place] + a[f"attn.b_{letter}"][place] for letter in "QKV")
    scores = _scores(head, a, place, q, k, np.arange(x.shape[1]))
    best = scores.max(axis=-1, keepdims=True)
    below = scores - np.where(np.isfinite(best), best, 0)  # the best is at 0
    if head["attention"] == "softmax":
        weights = np.exp(below)
    elif head["attention"] == "sparsemax":
        low, high = np.full_like(best, -1.0), np.zeros_like(best)
        for _ in range(60):  # bisection for the threshold
            middle = (low + high) / 2
            over = np.maximum(below - middle, 0).sum(axis=-1, keepdims=True) >= 1
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        weights = np.maximum(below - low, 0)
    else:
        way = {"left": 1, "right": -1, "average": 0}[head["ties"]]
        weights = (below >= -head["resolution"]).astype(float)[..., :: way or 1]
        weights = (weights * (np.cumsum(weights, axis=-1) == 1) if way else weights)[..., :: way or 1]
    total = weights.sum(axis=-1, keepdims=True)
    return (weights / np.where(total > 0, total, 1)) @ v @ a["attn.W_O"][place]


def _scores(head: dict[str, Any], a: dict[str, Any], place: int, q: Any, k: Any, at: Any) -> Any:
    """Scores [..., query, key] of the queries at some positions; those of keys that they may not see are -inf."""
    scores, back = a["attn.beta"][place] * (q @ np.swapaxes(k, -1, -2)), at[:, None] - np.arange(k.shape[-2])
    first, last = {"causal": (0, np.inf), "strict": (1, np.inf), "after": (-np.inf, -1)}.get(
        head["mask"], (-np.inf, np.inf)
    )
    if head["window"] is not None:
        first, last, bias = max(first, 0), min(last, head["window"] - 1), a["attn.b_rel"][place]
        scores = scores + bias[np.clip(back, 0, len(bias) - 1)]
    return np.where((back >= first) & (back <= last), scores, -np.inf)


def _heads(arrays: dict[str, Any], net: dict[str, Any], labels: Any, proof: Any, found: Recheck) -> None:
    """Temperatures, and where the heads look whose scores depend on positions alone."""
    written, derived = np.zeros(net["d_model"], dtype=bool), 0  # dimensions that a block before this one writes
    for index, block in enumerate(net["blocks"]):
        a = _block(arrays, index)
        for label in (label for label in labels if label["block"] == index):
            beta, least = a["attn.beta"][label["place"]], label["beta_min"]
            _need(least is None or beta >= least, f"{label['name']!r} has the temperature {beta}, and needs {least}")
            stated = [h for h in proof["heads"] if (h["block"], h["place"]) == (index, label["place"])] if proof else []
            if type(label["looks"]) is int:
                derived += _looks(arrays, a, net, block["heads"][label["place"]], label, written, stated)
        for key in a.keys() & {"attn.W_O", "mlp.W_out", "mlp.b_out"}:
            written |= a[key].reshape(-1, net["d_model"]).any(axis=0)
    found.done.append(f"temperatures of {len(labels)} heads, and where {derived} of them look, at all positions")
    found.left += [f"margins of {len(labels) - derived} heads"] * (derived < len(labels))


def _looks(arrays: Any, a: Any, net: Any, head: Any, label: Any, written: Any, stated: Any) -> bool:
    """Check where a head looks, position by position; False if its scores depend on more than positions."""
    symbols, pads, place = arrays["embed.W_E"], net["pads"], label["place"]
    reads = a["attn.W_Q"][place].any(axis=1) | a["attn.W_K"][place].any(axis=1)
    if (reads & (written | np.ptp(symbols[1:], axis=0).astype(bool))).any():
        return False
    here = np.arange(net["max_length"] + pads)
    x = np.where(reads, arrays["pos_embed.W_pos"] + symbols[np.where(here < pads, 0, 1)], 0)
    q, k = (x @ a[f"attn.W_{letter}"][place] + a[f"attn.b_{letter}"][place] for letter in "QK")
    lead = np.inf
    for at in np.split(here[pads:], range(256, net["max_length"], 256)):
        scores, target = _scores(head, a, place, q[at], k, at), (at - label["looks"])[:, None]
        right = np.where(target >= pads, here == target, here < pads)
        best, other = (np.where(which, scores, -np.inf).max(axis=1) for which in (right, ~right))
        lead = min(lead, float((best - other).min()))
    least = max([0.0, *(h["gap"] for h in stated if h["gap"])]) * (1 - 1e-9)
    _need(lead > least, f"{label['name']!r} should look {label['looks']} back, leading by {least}: it leads by {lead}")
    return True


def _meaning(spec: Any, net: dict[str, Any]) -> tuple[str, Any, Any, Any]:
    """What a spec says: of what kind, after every prefix of a word (None: nothing is asked), its words, a random one.

    Where a spec has no words of its own, all are asked about.
    """
    kind, output = type(spec).__name__, net["output"]
    inputs = spec.vocabulary if kind in ("Grammar", "Dyck", "WordPatterns") else getattr(spec, "alphabet", ())
    same = kind in ("NGramModel", "ProbabilisticAutomaton") or [*inputs] == net["inputs"][1:]
    _need(same, "the spec and the network do not read the same symbols")
    if kind == "Automaton":
        accepting = set(spec.accepting_states) & set(output["symbols"])
        _need(accepting == set(output["accepting"]), "the spec and the network do not accept the same states")
        final = output["kind"] == "class"
        return "symbol", lambda w: [spec.run(w)[-1]] * (len(w) + 1) if final else spec.run(w), None, None
    if kind in ("NGramModel", "ProbabilisticAutomaton"):
        model = spec if kind == "NGramModel" else spec.bigram
        after = cache(lambda w: dict(zip(model.predicted, np.exp(model.next_log_probs([w])[0]), strict=True)))
        return "chances", lambda w: [after(tuple(w[:end])) for end in range(len(w) + 1)], None, None
    if kind in ("Formula", "Crasp"):
        ids = {symbol: number for number, symbol in enumerate(spec.alphabet)}
        holds = lambda w: spec.holds(np.array([[ids[symbol] for symbol in w]], dtype=np.int64))[0].tolist()  # noqa: E731
        return "symbol", lambda w: [None, *map(str, holds(w) if len(w) else [])], None, None
    if kind == "Program" and output["kind"] == "values":
        return "number", lambda w: [None, *map(float, spec(w))], None, None
    if kind == "Program":
        return "symbol", lambda w: [None, *map(str, spec(w))], None, None
    if kind == "Dyck" and output["kind"] == "class":
        return "symbol", lambda w: [("no", "yes")[spec.holds(w)]] * (len(w) + 1), None, None
    if kind == "Grammar" and output["kind"] == "lm":
        grammar = spec if spec.probabilistic else spec.uniform()
        return "chances", grammar.next_word_probs_along, spec.prefixes, spec.draw
    if kind in ("Grammar", "Dyck", "WordPatterns"):
        return "set", spec.next_words_along, spec.prefixes, spec.draw
    raise FolderError(f"recheck does not know what a spec of type {kind} says")


def _answers(arrays: Any, net: dict[str, Any], meaning: tuple[str, Any, Any, Any], domain: str, found: Recheck) -> None:
    """Ask about all words of the stated domain, and about some long ones."""
    (_, _, own, draw), symbols, rng = meaning, net["inputs"][1:], np.random.default_rng(0)
    kind = "beginnings of sentences to length" if own else f"words of length {net['min_length']} to"
    if domain.startswith("all "):
        stated = re.match(rf"all (\d+) {kind} (\d+)(; |$)", domain)
        count, longest = (int(stated[1]), int(stated[2])) if stated else (0, 0)
        _need(0 < count <= 2 * MOST_WORDS and longest <= net["max_length"], f"{domain!r} is no domain of this network")
        sizes = range(net["min_length"], longest + 1)
        words = list(islice(own(longest) if own else chain(*(product(symbols, repeat=n) for n in sizes)), count + 1))
        _need(len(words) == count and len(words[-1]) == longest, f"there are not {count} words to length {longest}")
        ahead = any(head["mask"] in ("none", "after") for block in net["blocks"] for head in block["heads"])
        off = _off(arrays, net, meaning, words, everywhere=ahead)
        found.done.append(f"all {count} words to length {longest}, off by at most {off:.3g}")
    length = min(net["max_length"], RANDOM_LENGTH)
    words = [draw(rng)[:length] if own else rng.choice(symbols, length).tolist() for _ in range(RANDOM_WORDS)]
    off = _off(arrays, net, meaning, words, everywhere=True)
    found.done.append(f"{len(words)} random words of up to {length} symbols, off by at most {off:.3g}")


def _off(arrays: Any, net: Any, meaning: tuple[str, Any, Any, Any], words: list[Any], *, everywhere: bool) -> float:
    """How far an answer is from the right one, at most: after each word, or each prefix; too far is a disagreement."""
    (kind, wanted, _, _), output, off = meaning, net["output"], 0.0
    ids = {symbol: number for number, symbol in enumerate(net["inputs"])}
    for length, alike in groupby(words, len):
        while batch := list(islice(alike, max(1, CELLS // (length + net["pads"]) ** 2))):
            tokens = np.array([[ids[symbol] for symbol in word] for word in batch], dtype=int)
            for word, rows in zip(batch, _forward(arrays, net, tokens.reshape(len(batch), length)), strict=True):
                answers = list(zip(wanted(word), rows, strict=True))
                for right, row in answers if everywhere else answers[-1:]:
                    error = 0.0 if right is None else _distance(kind, output, right, row)
                    _need(error <= OFF, f"the answer to {' '.join(word)!r} is wrong")
                    off = max(off, error)
    return off


def _distance(kind: str, output: dict[str, Any], right: Any, row: Any) -> float:
    """How far an answer is from the right one: 0 or 1 for symbols and sets, where a tie counts as wrong."""
    symbols = output["symbols"]
    if kind == "number":
        return abs(float(row[0]) - right)
    if kind == "symbol":
        own = np.array([symbol == right for symbol in symbols])
        return 0.0 if own.any() and (row[own] - row[~own].max(initial=-np.inf) > TIE).all() else 1.0
    if kind == "set":
        return 0.0 if all((x > TIE) if s in right else (x < -TIE) for s, x in zip(symbols, row, strict=True)) else 1.0
    if not np.isfinite(row).all():
        return 1.0
    row = row if output["scores"] == "linear" else np.exp(row - (row.max() if output["scores"] == "softmax" else 0))
    row = row if output["scores"] == "log" else row / row.sum()
    return float(np.abs(row - [float(right.get(symbol, 0)) for symbol in symbols]).max())
