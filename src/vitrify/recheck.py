"""A second opinion on a model folder with a certificate, by code that shares nothing with what built and judged it.

It runs the net by a forward pass of its own, and imports the specs, because they say what is right, and nothing else.
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
import safetensors.numpy

from vitrify.errors import FolderError, InputError, SpecError
from vitrify.spec import read_spec

SCHEMA, KEYS = 2, {"schema", "tool", "sha256", "evidence", "mutations", "ledger", "digest"}
EVIDENCE = {"verdict", "method", "domain", "cases", "witness", "declared", "measured", "seed", "notes", "proof"}
TIE, OFF = 1e-6, 1e-9  # a lead that rounding could decide; how far a probability or a number may be off
MOST_WORDS, MOST_ENTRIES, CELLS = 1 << 22, 1 << 27, 1 << 22  # tried; of a dense array; of the scores of one batch
SEEN = {"none": (-np.inf, np.inf), "causal": (0, np.inf), "strict": (1, np.inf), "after": (-np.inf, -1)}  # places back
ODD = (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)  # of damaged files
LISTED, RANDOM, LONGEST = 100, 16, 2048  # words that are asked about beyond the stated domain, and how long
KNOWN = {"Automaton", "Formula", "Crasp", "Program", "Grammar", "Dyck", "WordPatterns", "Associations", "Facts"}


class Disagreement(Exception):
    """What does not agree, in a sentence."""


@dataclass
class Recheck:
    """A problem if something does not agree, why answers were not judged if they were not, what was done, what not."""

    problem: str | None = None
    unjudged: str | None = None
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def recheck(folder: Path) -> Recheck:
    """Check a folder against its certificate, from scratch; FolderError where there is nothing that can be checked."""
    found = Recheck()
    try:
        _recheck(folder, found)
    except Disagreement as error:
        found.problem = str(error)
    except NotImplementedError as error:  # its answers are not asked for again
        found.unjudged = str(error)
    except (*ODD, safetensors.SafetensorError, SpecError, InputError) as error:
        found.problem = f"something is not as vitrify writes it: {error!r}"
    return found


def _need(holds: object, sentence: str) -> None:
    if not holds:
        raise Disagreement(sentence)


def _recheck(folder: Path, found: Recheck) -> None:
    data = _certificate(folder)
    files = {name: (folder / name).read_bytes() for name in data["sha256"]}
    changed = [name for name in files if hashlib.sha256(files[name]).hexdigest() != data["sha256"][name]]
    _need(not changed, f"{', '.join(changed)} changed since the certificate was written")
    config, labels, evidence = json.loads(files["config.json"]), json.loads(files["labels.json"]), data["evidence"]
    needed = {"model.safetensors", "labels.json", config["spec"]}
    _need({*needed, "config.json"} == set(files), "the certificate is about other files")
    stale = ", ".join(name for name in needed if data["sha256"][name] != config["sha256"][name])
    _need(not stale, f"config.json was written for another {stale}")
    found.done.append(f"hashes of {len(files)} files and of the certificate")
    said, against, broken, net = evidence["verdict"], evidence["witness"], data["mutations"], config["net"]
    _need(said == "holds" and against is None, f"the certificate itself says {said!r}, with the witness {against}")
    plain = {"architecture": "transformer", "reads": "tokens", "norm": False, "residual": "add", "loops": 1}
    odd, blocks = [key for key, value in plain.items() if net.get(key) != value], net.get("blocks", ())
    odd += [key for block in blocks for key in ("experts", "cell") if block.get(key)]
    odd += ["heads" for b in blocks for h in b["heads"] if h["rotary"] or h["attention"] == "linear"]
    error, allowed = evidence["measured"]["largest error"], evidence["declared"]["largest error"]
    _need(0 <= error <= allowed and (odd or allowed in (0, 1e-12, OFF, 0.5)), f"an error of {error}, {allowed} allowed")
    _need(not broken or broken["tried"] - broken["rejected"] == len(broken["survivors"]), "survivors are missing")
    if odd:
        raise NotImplementedError(f"recheck runs plain transformers that read tokens; this net differs in {odd[0]}")
    _claims(evidence, net["max_length"])
    arrays, meaning = _arrays(files["model.safetensors"], net), _meaning(read_spec(folder / config["spec"]), net)
    every = np.concatenate([array.ravel() for name, array in arrays.items() if not name.endswith(".")])
    ledger: Any = {"nonzero": np.count_nonzero(every), "dense": every.size, "max_abs": float(np.abs(every).max())}
    _need(data["ledger"] == ledger, f"the weights have {ledger}, and the certificate states {data['ledger']}")
    found.done.append("weights: {nonzero} of {dense} are not zero, {max_abs:.6g} at most".format(**ledger))
    _heads(arrays, net, labels["heads"], evidence["proof"], found)
    _answers(arrays, net, meaning, evidence["domain"], found)
    found.left += ["weights that no such answer needs, spaces, the proof for all words, lower precision, mutations"]


def _certificate(folder: Path) -> dict[str, Any]:
    """The certificate, which must be the canonical text of a known schema, with the digest of itself."""
    path = folder / "certificate.json"
    if not path.is_file():
        raise FolderError(f"{folder} has no certificate.json: 'vitrify certify {folder}' writes one")
    data: dict[str, Any] = json.loads(path.read_bytes().decode())
    rest = {key: data[key] for key in data if key != "digest"}
    whole, part = (json.dumps(d, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n" for d in (data, rest))
    same = whole == path.read_bytes() and data.get("digest") == hashlib.sha256(part).hexdigest()
    _need(same, "certificate.json changed since it was written")
    if data.get("schema") != SCHEMA:
        raise FolderError(f"{path} has schema {data.get('schema')!r}, this vitrify checks {SCHEMA}: certify again")
    _need(set(data) == KEYS and set(data["evidence"]) == EVIDENCE, "the certificate lacks parts, or has others")
    return data


def _claims(evidence: dict[str, Any], longest: int) -> None:
    """That what the certificate says of words fits together, wherever one part follows from another."""
    parts, proof, least, most = evidence["domain"].split("; "), evidence["proof"], 0, 0
    for part in parts:
        all_, some, length = re.findall(r"^(?:all (\d+) .*|every prefix of (\d+) .*?(?:length (\d+))?)$", part)[0]
        least += int(all_ or 0) + int(some or 0) * (int(length or 0) + 1)
        most += int(all_ or 0) + int(some or 0) * (int(length or longest) + 1)
    _need(least <= evidence["cases"] <= most, f"the domain has {least} to {most} cases, not {evidence['cases']}")
    methods = [name for name in evidence["method"].split("+") if not name.endswith("in reals")]
    rests = dict.fromkeys("exhaustive" if p.startswith("all ") else "sampled" for p in parts if "real arith" not in p)
    rests |= {"proved": None} if proof and proof["holds"] and proof["max_length"] <= longest else {}
    _need(methods == list(rests), f"the method is stated as {methods}, and what is there is {list(rests)}")


def _arrays(content: bytes, net: dict[str, Any]) -> dict[str, Any]:
    """All arrays, dense; those of a block also by their own names, under its name."""
    flat: dict[str, Any] = safetensors.numpy.load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    for name, shape in json.loads(header["__metadata__"]["vitrify"])["sparse"].items():
        if np.prod(shape) > MOST_ENTRIES:
            raise NotImplementedError(f"{name} is too large to be run here")
        values, columns, starts = (flat.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
        flat[name], rows = np.zeros(shape), np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        np.add.at(flat[name].reshape(-1, shape[-1]), (rows, columns), values)
    _need(all(np.isfinite(array).all() for array in flat.values()), "some weight is not a finite number")
    _need(len(flat["pos_embed.W_pos"]) == net["max_length"] + net["pads"], "the positions are not the network's")
    for start in [f"blocks.{index}." for index in range(len(net["blocks"]))]:
        flat[start] = {key.removeprefix(start): array for key, array in flat.items() if key.startswith(start)}
    return flat


def _forward(arrays: dict[str, Any], net: dict[str, Any], words: Any) -> Any:
    """Logits [word, prefix, symbol] of words of one length, given as numbers of symbols without the pads."""
    tokens = np.pad(words, ((0, 0), (net["pads"], 0)))
    x = arrays["embed.W_E"][tokens] + arrays["pos_embed.W_pos"][: tokens.shape[1]]
    for index, block in enumerate(net["blocks"]):
        a = arrays[f"blocks.{index}."]
        x = x + sum(_head(head, a, place, x) for place, head in enumerate(block["heads"]))
        if block["units"]:
            x = x + np.maximum(x @ a["mlp.W_in"] + a["mlp.b_in"], 0) @ a["mlp.W_out"] + a["mlp.b_out"]
    return (x @ arrays["unembed.W_U"] + arrays["unembed.b_U"])[:, net["pads"] - 1 :]


def _head(head: dict[str, Any], a: dict[str, Any], place: int, x: Any) -> Any:
    q, k, v = (x @ a[f"attn.W_{letter}"][place] + a[f"attn.b_{letter}"][place] for letter in "QKV")
    scores = _scores(head, a, place, q, k, np.arange(x.shape[1]))
    below = scores - np.maximum(scores.max(axis=-1, keepdims=True), -1e300)  # the best is at 0
    if head["attention"] == "softmax":
        weights = np.exp(below)
    elif head["attention"] == "sparsemax":
        ordered = np.sort(below, axis=-1)[..., ::-1]
        threshold = ((np.cumsum(ordered, axis=-1) - 1) / np.arange(1, x.shape[1] + 1)).max(axis=-1, keepdims=True)
        weights = np.maximum(below - np.maximum(threshold, -1), 0)
    else:
        way = {"left": 1, "right": -1, "average": 0}[head["ties"]]
        weights = (below >= -head["resolution"]).astype(float)[..., :: way or 1]
        weights = (weights * (np.cumsum(weights, axis=-1) == 1) if way else weights)[..., :: way or 1]
    return weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300) @ v @ a["attn.W_O"][place]


def _scores(head: dict[str, Any], a: dict[str, Any], place: int, q: Any, k: Any, at: Any) -> Any:
    """Scores [..., query, key] of the queries at some positions; those of keys that they may not see are -inf."""
    scores, back = a["attn.beta"][place] * (q @ np.swapaxes(k, -1, -2)), at[:, None] - np.arange(k.shape[-2])
    first, last = SEEN[head["mask"]]
    if head["window"] is not None:
        first, last, bias = max(first, 0), min(last, head["window"] - 1), a["attn.b_rel"][place]
        scores = scores + bias[np.clip(back, 0, len(bias) - 1)]
    return np.where((back >= first) & (back <= last), scores, -np.inf)


def _heads(arrays: dict[str, Any], net: dict[str, Any], labels: Any, proof: Any, found: Recheck) -> None:
    """Temperatures, and where the heads look whose scores depend on positions alone."""
    written, derived = np.zeros(net["d_model"], dtype=bool), 0  # dimensions that a block before this one writes
    for index, block in enumerate(net["blocks"]):
        a = arrays[f"blocks.{index}."]
        for label in (label for label in labels if label["block"] == index):
            beta, least = a["attn.beta"][label["place"]], label["beta_min"]
            _need(least is None or beta >= least, f"{label['name']!r} has the temperature {beta}, and needs {least}")
            stated = [h for h in proof["heads"] if (h["block"], h["place"]) == (index, label["place"])] if proof else []
            derived += type(label["looks"]) is int and _looks(arrays, a, net, block, label, written, stated)
        for key in a.keys() & {"attn.W_O", "mlp.W_out", "mlp.b_out"}:
            written |= a[key].reshape(-1, net["d_model"]).any(axis=0)
    found.done.append(f"temperatures of {len(labels)} heads, and where {derived} of them look, at all positions")
    found.left += [f"margins of {len(labels) - derived} heads"] * (derived < len(labels))


def _looks(arrays: Any, a: Any, net: Any, block: Any, label: Any, written: Any, stated: Any) -> bool:
    """Check where a head looks, position by position; False if its scores depend on more than positions."""
    symbols, pads, place = arrays["embed.W_E"], net["pads"], label["place"]
    reads = a["attn.W_Q"][place].any(axis=1) | a["attn.W_K"][place].any(axis=1)
    if (reads & (written | np.ptp(symbols[1:], axis=0).astype(bool))).any():
        return False
    here, lead = np.arange(net["max_length"] + pads), np.inf
    x = np.where(reads, arrays["pos_embed.W_pos"] + symbols[np.where(here < pads, 0, 1)], 0)
    q, k = (x @ a[f"attn.W_{letter}"][place] + a[f"attn.b_{letter}"][place] for letter in "QK")
    for at in np.split(here[pads:], range(256, net["max_length"], 256)):
        scores, target = _scores(block["heads"][place], a, place, q[at], k, at), (at - label["looks"])[:, None]
        right = np.where(target >= pads, here == target, here < pads)
        best, other = (np.where(which, scores, -np.inf).max(axis=1) for which in (right, ~right))
        lead = min(lead, float((best - other).min()))
    least = max([0.0, *(h["gap"] for h in stated if h["gap"])]) * (1 - 1e-9)
    _need(lead > least, f"{label['name']!r} should look {label['looks']} back, leading by {least}: it leads by {lead}")
    return True


def _meaning(spec: Any, net: dict[str, Any]) -> tuple[str, Any, Any]:
    """What a spec says after every prefix (None: nothing is asked), of what kind; itself if not all words are its."""
    free = getattr(spec, "free", False) and not spec.numeric  # a task of all words, whose answers are symbols
    kind, way = "Task" if free else type(spec).__name__, net["output"]["kind"]
    if kind in ("NGramModel", "ProbabilisticAutomaton"):
        model = spec if kind == "NGramModel" else spec.bigram
        after: Any = cache(lambda w: dict(zip(model.predicted, np.exp(model.next_log_probs([w])[0]), strict=True)))
        return "chances", lambda w: [after(tuple(w[:end])) for end in range(len(w) + 1)], None
    if kind not in {*KNOWN, "Task"}:
        raise NotImplementedError(f"recheck does not know what a spec of type {kind} says")
    inputs = spec.alphabet if hasattr(spec, "alphabet") else spec.vocabulary
    _need([*inputs] == net["inputs"][1:], "the spec and the network do not read the same symbols")
    if kind == "Automaton":
        accepting = set(spec.accepting_states) & set(net["output"]["symbols"])
        _need(accepting == set(net["output"]["accepting"]), "the spec and the network do not accept the same states")
        return "symbol", lambda w: [spec.run(w)[-1]] * (len(w) + 1) if way == "class" else spec.run(w), None
    if kind in ("Formula", "Crasp"):
        return "symbol", lambda w: [None, *map(str, spec.holds(np.array([[*map(inputs.index, w)]], int))[0])], None
    if kind == "Task":
        return "symbol", lambda w: [None, *spec.answers(w)], None
    if kind == "Program":
        form = float if way == "values" else str
        return "number" if form is float else "symbol", lambda w: [None, *map(form, spec(w))], None
    if kind == "Dyck" and way == "class":
        return "symbol", lambda w: [("no", "yes")[spec.holds(w)]] * (len(w) + 1), None
    if kind in ("Associations", "Facts"):
        return "symbol", lambda w: [spec.answer(w[:end]) for end in range(len(w) + 1)], spec
    if way == "lm":
        return "chances", (spec if spec.probabilistic else spec.uniform()).next_word_probs_along, spec
    return "set", spec.next_words_along, spec


def _answers(arrays: Any, net: dict[str, Any], meaning: Any, domain: str, found: Recheck) -> None:
    """Ask about all words of the stated domain, and about some long ones."""
    own, symbols, fewest, rng = meaning[2], net["inputs"][1:], net["min_length"], np.random.default_rng(0)
    kind = "beginnings of sentences to length" if own else f"words of length {fewest} to"
    if domain.startswith("all "):
        stated = re.match(rf"all (\d+) {kind} (\d+)(?:; |$)", domain)
        count, longest = map(int, stated.groups()) if stated else (0, 0)
        _need(0 < count <= 2 * MOST_WORDS and longest <= net["max_length"], f"{domain!r} is no domain of this network")
        every = chain(*(product(symbols, repeat=length) for length in range(fewest, longest + 1)))
        words = list(islice(own.prefixes(longest) if own else every, count + 1))
        _need(len(words) == count and len(words[-1]) == longest, f"there are not {count} words to length {longest}")
        ahead = {"none", "after"} & {head["mask"] for block in net["blocks"] for head in block["heads"]}
        found.done.append(f"all {count} words to length {longest}" + _off(arrays, net, meaning, words, bool(ahead)))
    length = min(net["max_length"], LONGEST)
    repeated = ((word * length)[:length] for size in (1, 2, 3) for word in product(symbols, repeat=size))
    words = [word[:length] for word in islice(own.examples() if own else repeated, LISTED)]
    words += [own.draw(rng)[:length] if own else rng.choice(symbols, length).tolist() for _ in range(RANDOM)]
    found.done.append(f"{len(words)} listed or random words to {length}" + _off(arrays, net, meaning, words, True))


def _off(arrays: Any, net: Any, meaning: Any, words: list[Any], everywhere: bool) -> str:
    """How far an answer is off at most, in words: after each word, or each prefix; too far is a disagreement."""
    (kind, wanted, _), output, off = meaning, net["output"], 0.0
    ids = {symbol: number for number, symbol in enumerate(net["inputs"])}
    for length, alike in groupby(words, len):
        while batch := list(islice(alike, max(1, CELLS // (length + net["pads"]) ** 2))):
            tokens = np.array([[ids[symbol] for symbol in word] for word in batch], dtype=int)
            for word, rows in zip(batch, _forward(arrays, net, tokens.reshape(len(batch), length)), strict=True):
                for right, row in list(zip(wanted(word), rows, strict=True))[0 if everywhere else -1 :]:
                    error = 0.0 if right is None else _distance(kind, output, right, row)
                    _need(error <= OFF, f"the answer to {' '.join(word)!r} is wrong")
                    off = max(off, error)
    return f", off by at most {off:.3g}"


def _distance(kind: str, output: dict[str, Any], right: Any, row: Any) -> float:
    """How far an answer is from the right one: 0 or 1 for symbols and sets, where a tie counts as wrong."""
    if kind == "number":
        return float(abs(row[0] - right))
    symbols, scores = output["symbols"], output["scores"]
    if kind == "symbol":
        own = np.array([symbol == right for symbol in symbols])
        tie = TIE if output["kind"] != "class" else TIE**2  # the lead of a net that counts to the end may be small
        return 0.0 if own.any() and (row[own] - row[~own].max(initial=-np.inf) > tie).all() else 1.0
    if kind == "set":
        return 0.0 if all((x > TIE) if s in right else (x < -TIE) for s, x in zip(symbols, row, strict=True)) else 1.0
    weights = row if scores == "linear" else np.exp(row - (row.max() if scores == "softmax" else 0))
    found = weights / (1 if scores == "log" else weights.sum())
    return float(np.abs(found - [float(right.get(symbol, 0)) for symbol in symbols]).max())
