"""A second opinion on a model folder with a certificate, by code that shares nothing with what built and judged it.

It runs the net by a forward pass of its own, and imports the specs, because they say what is right, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby, islice, product
from math import prod
from pathlib import Path
from secrets import randbits
from typing import Any

import numpy as np
import safetensors.numpy

from vitrify.errors import FolderError, InputError, SpecError
from vitrify.spec import read_spec
from vitrify.spec.kinds import Meaning, Spec

SCHEMA, KEYS = 7, {"schema", "tool", "sha256", "evidence", "mutations", "sizes", "digest"}
STATED, MAY = {"verdict", "cases", "domains", "quantities", "links"}, {"witness", "seed", "notes", "proof"}
ALL, PART = {"words", "prefixes of sentences"}, ("kind", "count", "shortest", "longest")  # kinds and parts of domains
SOME = {"words that exercise the listed parts", "first words", "random words", "random sentences"}  # kinds, sampled
TIE, TOLERANCE = 1e-6, 1e-9  # a margin that rounding could decide; error of a probability or a number
MAX_BYTES, MAX_MESSAGE = 1 << 32, 4_000  # of a file; characters, as messages quote what a file says
MAX_WORDS, MAX_ENTRIES, MAX_SCORES = 1 << 22, 1 << 27, 1 << 22  # words tried; of a dense array; of one batch
SEEN = {"none": (-np.inf, np.inf), "causal": (0, np.inf), "strict": (1, np.inf), "after": (-np.inf, -1)}  # offsets
DAMAGE = (OSError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)  # of files
LINK = {"name", "scope", "longest", "lemma", "instances", "reason"}
LISTED, RANDOM, LONGEST = 100, 16, 2048  # further words beyond the stated domain, and their longest length

JsonObject = dict[str, Any]  # from a file that may be damaged: whatever is odd in it is caught
Array = Any  # of NumPy
Arrays = Mapping[str, Any]  # by name, or by name within a block


class Disagreement(Exception):
    """A part of the folder that does not agree with the certificate; the message says which."""


@dataclass
class Recheck:
    """Report of a recheck: a problem, or why answers were not judged; what was checked, and what was left out.

    `links` says of each link of the certificate what was tested or derived again. `left` names every other statement
    of the certificate that was not checked. `seed` is that of the random words.
    """

    problem: str | None = None
    unjudged: str | None = None
    seed: int = 0
    links: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def recheck(folder: Path | str, seed: int | None = None) -> Recheck:
    """Check a folder against its certificate, from scratch; FolderError where there is nothing that can be checked.

    Random words have a fresh seed, by default: who writes a certificate can't know them.
    """
    report = Recheck(seed=randbits(32) if seed is None else seed)
    try:
        _recheck(Path(folder), report)
    except Disagreement as error:
        report.problem = str(error)[:MAX_MESSAGE]
    except NotImplementedError as error:  # its answers are not run again
        report.unjudged = str(error)
    except (*DAMAGE, safetensors.SafetensorError, SpecError, InputError) as error:
        report.problem = f"something is not as vitrify writes it: {error!r}"[:MAX_MESSAGE]
    return report


def _need(holds: object, sentence: str) -> None:
    if not holds:
        raise Disagreement(sentence)


def _content(folder: Path, name: str) -> bytes:
    """Return the bytes of a file of the folder, which no link and no path may lead out of."""
    path = folder / name
    plain = Path(name).name == name and stat.S_ISREG(path.lstat().st_mode) and path.lstat().st_size <= MAX_BYTES
    _need(plain, f"{name!r} is not a regular file of the folder of at most {MAX_BYTES:,} bytes")
    return path.read_bytes()


def _recheck(folder: Path, report: Recheck) -> None:
    data = _certificate(folder)
    files = {name: _content(folder, name) for name in data["sha256"]}
    changed = [name for name in files if hashlib.sha256(files[name]).hexdigest() != data["sha256"][name]]
    _need(not changed, f"{', '.join(changed)} changed since the certificate was written")
    config, labels, evidence = json.loads(files["config.json"]), json.loads(files["labels.json"]), data["evidence"]
    needed = {"model.safetensors", "labels.json", config["spec"]}
    _need({*needed, "config.json"} == set(files), "the certificate is about other files")
    stale = ", ".join(name for name in needed if data["sha256"][name] != config["sha256"][name])
    _need(not stale, f"config.json was written for another {stale}")
    report.done.append(f"hashes of {len(files)} files and of the certificate")
    verdict, against, broken, net = evidence["verdict"], evidence.get("witness"), data["mutations"], config["net"]
    says = f"the certificate says {verdict!r}, with the counterexample {against}"
    _need(verdict == "holds" and against is None, says)
    plain = {"architecture": "transformer", "reads": "tokens", "norm": False, "residual": "add", "loops": 1}
    odd, blocks = [key for key, value in plain.items() if net.get(key) != value], net.get("blocks", ())
    odd += [key for block in blocks for key in ("experts", "cell") if block.get(key)]
    heads = [head for block in blocks for head in block["heads"]]
    odd += ["heads" for head in heads if head["rotary"] or head.get("segment") or head["attention"] == "linear"]
    errors = {q["name"]: (q["measured"], q["declared"]) for q in evidence["quantities"] if q.get("relation") == "<="}
    _need(all(far <= limit for far, limit in errors.values()), f"some error is too large: {errors}")
    error, allowed = errors["largest error"]
    known = (0, 1e-12, TOLERANCE, *([net["output"]["error"]] if net["output"]["kind"] in ("values", "lm") else ()))
    _need(0 <= error <= allowed and (odd or allowed in known), f"an error of {error}, {allowed} allowed")
    _need(not broken or broken["tried"] - broken["rejected"] == len(broken["survivors"]), "survivors are missing")
    if odd:
        raise NotImplementedError(f"recheck runs plain transformers that read tokens; this net differs in {odd[0]}")
    reads = int((2**53 / net.get("rounding", 1)) ** (1 / net.get("rounding_power", 2)) + 1e-9) - 1
    _claims(evidence, reads if "rounding" in net else net["max_length"], report)
    arrays, meaning = _arrays(files["model.safetensors"], net), _meaning(read_spec(folder / config["spec"]), net)
    every = np.concatenate([array.ravel() for name, array in arrays.items() if not name.endswith(".")])
    largest = float(np.abs(every).max())
    sizes: JsonObject = {"nonzero": np.count_nonzero(every), "dense": every.size, "max_abs": largest}
    _need(data["sizes"] == sizes, f"the weights have {sizes}, and the certificate states {data['sizes']}")
    report.done.append("weights: {nonzero} of {dense} are not zero, {max_abs:.6g} at most".format(**sizes))
    t = np.maximum(np.arange(net["max_length"] + net["pads"]) + 1.0 - net["pads"], 0)
    if net.get("formulas"):  # a dimension is a function of the position, which is 0 at the pads
        arrays["pos_embed.W_pos"] = np.zeros((len(t), net["d_model"]))
        for each in net["formulas"]:
            kind, polynomial = each.get("function", ""), np.polynomial.Polynomial(each["coefficients"])
            rows = polynomial(t % 2 if "mod 2" in kind else t)
            arrays["pos_embed.W_pos"][:, each["dim"]] = np.log(np.maximum(rows, 1)) if "log" in kind else rows
    _need(len(arrays["pos_embed.W_pos"]) == len(t), "the positions are not the network's")
    reach = _heads(arrays, net, labels["heads"], evidence.get("proof"), report)
    _answers(arrays, net, meaning, evidence["domains"], report)
    lemma = evidence["links"][1].get("lemma")
    if reach is not None and lemma and (words := _windows(meaning, reach + 1)):
        words = [word for word in words if len(word) <= net["max_length"]]
        off = _off(arrays, net, meaning, words, False)
        about = f"answers depend on {reach + 1} letters, and all {len(words)} pairs of them and a state were run{off}"
        report.links["spec"] = f"derived again up to length {net['max_length']}: {about}; not derived again: {lemma}"
    report.left += ["labels but the β and offsets of heads, the record 'about': a command may refuse the folder"]
    report.left += ["weights that no such answer needs, mutants"]


def _certificate(folder: Path) -> JsonObject:
    """The certificate, which must be the canonical text of a known schema, with the digest of itself."""
    path = folder / "certificate.json"
    if not path.is_file():
        raise FolderError(f"{folder} has no certificate.json: 'vitrify certify {folder}' writes one")
    content = _content(folder, path.name)
    data: JsonObject = json.loads(content.decode())
    rest = {key: data[key] for key in data if key != "digest"}
    text, part = (json.dumps(d, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n" for d in (data, rest))
    same = text == content and data.get("digest") == hashlib.sha256(part).hexdigest()
    _need(same, "certificate.json changed since it was written")
    if data.get("schema") != SCHEMA:
        raise FolderError(f"{path} has schema {data.get('schema')}, not {SCHEMA}: 'vitrify certify {folder}' renews it")
    parts = set(data["evidence"])
    _need(set(data) == KEYS and STATED <= parts <= STATED | MAY, "the certificate lacks parts, or has others")
    return data


def _claims(evidence: JsonObject, longest: int, report: Recheck) -> None:
    """Check that what the certificate states of words fits together, and list what is not checked by itself."""
    least, most, proof, complete, every = 0, 0, evidence.get("proof"), None, False
    for part in evidence["domains"]:
        (kind, count, low, high), method = (part[key] for key in PART), part["method"]
        known = kind in ALL if method == "exhaustive" else method == "sampled" and kind in ALL | SOME
        _need(known and set(part) <= {*PART, "method", "arithmetic"}, f"the method of {kind} is stated as {method}")
        _need(count > 0 and 0 <= low <= high <= longest, f"{count} {kind} to {high}: no domain of this network")
        if kind in ALL and "arithmetic" not in part:
            complete, every = max(complete or 0, high), every or method == "exhaustive"
        least, most = (n + count * (1 if kind in ALL else end + 1) for n, end in ((least, low), (most, high)))
    _need(least <= evidence["cases"] <= most, f"the domains have {least} to {most} cases, not {evidence['cases']}")
    _need(not proof or not proof["holds"] or proof["max_length"] <= longest, "the proof is for longer words")
    tested = ("exhaustive" if every else "sampled", complete)
    for name, link in zip(("weights", "spec"), evidence["links"], strict=True):
        scope, end, lemma = link["scope"], link.get("longest"), link.get("lemma", "")
        known = end is None if scope == "every length" else scope == "to T" and type(end) is int and 0 <= end <= longest
        bare = (scope, end, lemma, link.get("instances", {})) == (*tested, "", {})
        _need(link["name"] == name and set(link) <= LINK and ((known and lemma) or bare), f"no link: {link}")
        margins = lemma != "margins" or (name == "weights" and proof and proof["holds"] and proof["max_length"] == end)
        _need(margins, f"the margins do not prove the link {name!r}")
        again = "tested again on samples" + ("" if complete is None else f", and on every word up to length {complete}")
        report.links[name] = f"not derived again: {lemma}, {scope}" if known else again
    report.left += ["the certificate's own sampled words, their seed, and the number of cases"]
    report.left += [f"quantities: {', '.join(str(each['name']) for each in evidence['quantities'])}"]
    report.left += ["proof: errors, margins of answers, spaces, lower precision"] * bool(proof)
    report.left += ["version, notes, reasons, runs in real arithmetic"]


def _arrays(content: bytes, net: JsonObject) -> dict[str, Array]:
    """All arrays, dense; those of a block also by their own names, under its name."""
    flat: dict[str, Array] = safetensors.numpy.load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    for name, shape in json.loads(header["__metadata__"]["vitrify"])["sparse"].items():
        if prod(shape) > MAX_ENTRIES:
            raise NotImplementedError(f"{name} is too large to be run here")
        values, columns, starts = (flat.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
        flat[name], rows = np.zeros(shape), np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        entries = rows * shape[-1] + columns  # their order, where they stand row by row
        inside = (
            len(starts) == prod(shape[:-1]) + 1 and starts[0] == 0 and ((columns >= 0) & (columns < shape[-1])).all()
        )
        sorted_once = (np.diff(entries) > 0).all() and values.dtype == float
        _need(
            inside and sorted_once, f"{name} is not canonical: sorted entries, each once, in its shape, of type float64"
        )
        flat[name].reshape(-1)[entries] = values
    finite = all(array.dtype == float and np.isfinite(array).all() for array in flat.values())
    _need(finite, "some weight is not a finite number of type float64")
    for start in [f"blocks.{index}." for index in range(len(net["blocks"]))]:
        flat[start] = {key.removeprefix(start): array for key, array in flat.items() if key.startswith(start)}
    return flat


def _forward(arrays: Arrays, net: JsonObject, words: Array) -> Array:
    """Logits [word, prefix, symbol] of words of one length, given as numbers of symbols without the pads."""
    tokens = np.pad(words, ((0, 0), (net["pads"], 0)))
    x = arrays["embed.W_E"][tokens] + arrays["pos_embed.W_pos"][: tokens.shape[1]]
    for index, block in enumerate(net["blocks"]):
        a = arrays[f"blocks.{index}."]
        x = x + sum(_head(head, a, place, x) for place, head in enumerate(block["heads"]))
        if block["units"]:
            x = x + np.maximum(x @ a["mlp.W_in"] + a["mlp.b_in"], 0) @ a["mlp.W_out"] + a["mlp.b_out"]
    return (x @ arrays["unembed.W_U"] + arrays["unembed.b_U"])[:, net["pads"] - 1 :]


def _head(head: JsonObject, a: Arrays, place: int, x: Array) -> Array:
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


def _scores(head: JsonObject, a: Arrays, place: int, q: Array, k: Array, at: Array) -> Array:
    """Scores [..., query, key] of the queries at some positions; those of keys that they may not see are -inf."""
    scores, back = a["attn.beta"][place] * (q @ np.swapaxes(k, -1, -2)), at[:, None] - np.arange(k.shape[-2])
    first, last = SEEN[head["mask"]]
    if head["window"] is not None:
        first, last, bias = max(first, 0), min(last, head["window"] - 1), a["attn.b_rel"][place]
        scores = scores + bias[np.clip(back, 0, len(bias) - 1)]
    return np.where((back >= first) & (back <= last), scores, -np.inf)


def _heads(
    arrays: Arrays, net: JsonObject, labels: list[JsonObject], proof: JsonObject | None, report: Recheck
) -> int | None:
    """Check inverse temperatures, and where the heads look whose scores depend on positions alone.

    Return how far back the network looks, if all heads do, and if positions count for nothing else.
    """
    written, reach = np.zeros(net["d_model"], dtype=bool), 0  # dimensions that an earlier block writes
    offsets: dict[tuple[int, int], int] = {}  # how far back a head looks
    moving = np.ptp(arrays["pos_embed.W_pos"][net["pads"] :], axis=0) > 0
    fixed = not arrays["unembed.W_U"][moving].any()
    named = {(label["block"], label["index"]) for label in labels if 0 <= label["block"] < len(net["blocks"])}
    _need(len(named) == len(labels), "some head has two labels, or some label no block")
    for index, block in enumerate(net["blocks"]):
        a = arrays[f"blocks.{index}."]
        for label in (label for label in labels if label["block"] == index):
            _need(0 <= label["index"] < len(block["heads"]), f"{label['name']!r} is a label of no head")
            beta, least = a["attn.beta"][label["index"]], label["beta_min"]
            _need(least is None or beta >= least, f"{label['name']!r} has the β {beta}, and needs {least}")
            here, heads = (index, label["index"]), proof["heads"] if proof else ()
            gaps = [h["gap"] for h in heads if (h["block"], h["index"]) == here and h["gap"]]
            head = block["heads"][label["index"]]
            back = 0 if (head["window"], head["mask"]) == (1, "causal") else label["attends_to"]  # 0: sees itself only
            if back == 0 or (type(back) is int and _attends_back(arrays, a, net, head, label, written, gaps)):
                offsets[here] = back
        reach += max((back for (block_of, _), back in offsets.items() if block_of == index), default=0)
        reads = [a[key].swapaxes(0, -2) for key in a.keys() & {"attn.W_V", "mlp.W_in"}]
        fixed = fixed and not any(array[moving].any() for array in reads)
        for key in a.keys() & {"attn.W_O", "mlp.W_out", "mlp.b_out"}:
            written |= a[key].reshape(-1, net["d_model"]).any(axis=0)
    report.done.append(f"β of {len(labels)} heads, and where {len(offsets)} of them look, at all positions")
    report.left += [f"margins of {len(labels) - len(offsets)} heads"] * (len(offsets) < len(labels))
    return reach if fixed and len(offsets) == sum(len(block["heads"]) for block in net["blocks"]) else None


def _attends_back(
    arrays: Arrays, a: Arrays, net: JsonObject, head: JsonObject, label: JsonObject, written: Array, gaps: list[float]
) -> bool:
    """Check where a head looks, position by position; False if its scores depend on more than positions."""
    symbols, pads, place = arrays["embed.W_E"], net["pads"], label["index"]
    reads = a["attn.W_Q"][place].any(axis=1) | a["attn.W_K"][place].any(axis=1)
    if (reads & (written | np.ptp(symbols[1:], axis=0).astype(bool))).any():
        return False
    here, margin = np.arange(net["max_length"] + pads), np.inf
    x = np.where(reads, arrays["pos_embed.W_pos"] + symbols[np.where(here < pads, 0, 1)], 0)
    q, k = (x @ a[f"attn.W_{letter}"][place] + a[f"attn.b_{letter}"][place] for letter in "QK")
    for at in np.split(here[pads:], range(256, net["max_length"], 256)):
        scores, target = _scores(head, a, place, q[at], k, at), (at - label["attends_to"])[:, None]
        right = np.where(target >= pads, here == target, here < pads)
        best, other = (np.where(which, scores, -np.inf).max(axis=1) for which in (right, ~right))
        margin = min(margin, float((best - other).min()))
    least = max([0.0, *gaps]) * (1 - 1e-9)
    _need(margin > least, f"{label['name']!r} should attend {label['attends_to']} back by {least}, not {margin}")
    return True


def _meaning(spec: Spec, net: JsonObject) -> Meaning:
    """Return what the spec says that such a network must answer."""
    meaning, output = spec.meaning(net["output"]["kind"], net["inputs"][1:]), net["output"]
    if meaning is None:
        raise NotImplementedError(f"a spec of type {type(spec).__name__} says nothing about {output['kind']!r} answers")
    _need([*meaning.inputs] == net["inputs"][1:], "the spec and the network do not read the same symbols")
    symbols, right = output["symbols"], [*meaning.outputs]
    known = {*symbols} <= {*right} and len({*symbols}) == len(symbols)  # a symbol that is never right may be left out
    _need(known if meaning.answer == "symbol" else symbols == right, "the spec and the network have other answers")
    accepting = {*meaning.accepting} & {*output["symbols"]}
    _need(accepting == {*output["accepting"]}, "the spec and the network do not accept the same states")
    return meaning


def _windows(meaning: Meaning, width: int) -> list[tuple[str, ...]]:
    """Return a word for each pair of the last `width` letters and a state of the spec; none if there are too many."""
    if meaning.states is None:
        return []
    first: tuple[tuple[str, ...], Any] = ((), meaning.states.start)
    seen: dict[Any, tuple[str, ...]] = {first: ()}
    edge = [first]
    while edge and len(seen) * len(meaning.inputs) <= MAX_WORDS // 64:
        steps = [(*pair, letter, meaning.states.step(pair[1], letter)) for pair in edge for letter in meaning.inputs]
        edge = []
        for last, before, letter, state in steps:
            pair = ((*last, letter)[-width:], state)
            if state is not None and pair not in seen:
                seen[pair] = (*seen[last, before], letter)
                edge.append(pair)
    return [] if edge else sorted(seen.values(), key=len)


def _answers(arrays: Arrays, net: JsonObject, meaning: Meaning, domains: list[JsonObject], report: Recheck) -> None:
    """Check the answers to all words of the stated domains, and to some long ones."""
    language, symbols, fewest = meaning.language, net["inputs"][1:], net["min_length"]
    rng = np.random.default_rng(report.seed)
    for part in (part for part in domains if part["kind"] in ALL):
        kind, count, shortest, longest = (part[key] for key in PART)
        fits = (kind, shortest) == (("prefixes of sentences", 0) if language else ("words", fewest))
        _need(fits and count <= 2 * MAX_WORDS, f"{part} is no domain of this network")
        every = chain(*(product(symbols, repeat=length) for length in range(fewest, longest + 1)))
        words = list(islice(language.prefixes(longest) if language else every, count + 1))
        _need(len(words) == count and len(words[-1]) == longest, f"there are not {count} words to length {longest}")
        further = islice(language.prefixes(net["max_length"]), count, count + 1) if language else symbols
        longer = longest < net["max_length"] and [*further]
        _need(not longer or part["method"] == "sampled", f"there are words longer than {longest}: not exhaustive")
        ahead = {"none", "after"} & {head["mask"] for block in net["blocks"] for head in block["heads"]}
        report.done.append(f"all {count} words to length {longest}" + _off(arrays, net, meaning, words, bool(ahead)))
    length = min(net["max_length"], LONGEST)
    repeated = ((word * length)[:length] for size in (1, 2, 3) for word in product(symbols, repeat=size))
    words = [tuple(islice(word, length)) for word in islice(language.examples() if language else repeated, LISTED)]
    drawn = (language.draw(rng) if language else rng.choice(symbols, length).tolist() for _ in range(RANDOM))
    words += [tuple(islice(word, length)) for word in drawn]
    report.done.append(f"{len(words)} listed or random words to {length}" + _off(arrays, net, meaning, words, True))


def _off(arrays: Arrays, net: JsonObject, meaning: Meaning, words: list[tuple[str, ...]], everywhere: bool) -> str:
    """Describe the largest error after each word, or each prefix; refuse one that is too large."""
    output, largest = net["output"], 0.0
    allowed = max(TOLERANCE, output["error"]) if meaning.answer in ("number", "distribution") else TOLERANCE
    ids = {symbol: number for number, symbol in enumerate(net["inputs"])}
    for length, alike in groupby(words, len):
        while batch := list(islice(alike, max(1, MAX_SCORES // (length + net["pads"]) ** 2))):
            tokens = np.array([[ids[symbol] for symbol in word] for word in batch], dtype=int)
            for word, rows in zip(batch, _forward(arrays, net, tokens.reshape(len(batch), length)), strict=True):
                for right, row in list(zip(meaning.after(word), rows, strict=True))[0 if everywhere else -1 :]:
                    error = 0.0 if right is None else _distance(meaning.answer, output, right, row)
                    _need(error <= allowed, f"the answer to {' '.join(word)!r} is wrong")
                    largest = max(largest, error)
    return f", off by at most {largest:.3g}" + (f" of {allowed:g} that are allowed" if allowed > TOLERANCE else "")


def _distance(kind: str, output: JsonObject, right: Any, row: Array) -> float:
    """Return the distance of an answer from the right one: 0 or 1 for symbols and sets, where a tie counts as wrong."""
    if kind == "number":
        return float(np.abs(row - right).max())
    symbols, scores = output["symbols"], output["scores"]
    if kind == "symbol":
        is_right = np.array([symbol == right for symbol in symbols])
        tie = TIE if output["kind"] != "class" else TIE**2  # the margin of a net that counts to the end may be small
        return 0.0 if is_right.any() and (row[is_right] - row[~is_right].max(initial=-np.inf) > tie).all() else 1.0
    if kind == "set":
        return 0.0 if all((x > TIE) if s in right else (x < -TIE) for s, x in zip(symbols, row, strict=True)) else 1.0
    weights = row if scores == "linear" else np.exp(row - (row.max() if scores == "softmax" else 0))
    probabilities = weights / (1 if scores == "log" else weights.sum())
    return float(np.abs(probabilities - [float(right.get(symbol, 0)) for symbol in symbols]).max())
