"""Path patching in TransformerLens: score each edge of a model without layer norm by the answers that it changes.

It reads only the model and `question.json` (see `docs/how-to/circuit-benchmark.md`), which pairs each sequence with a
donor. The writer's output on the donor minus that on the sequence is added to the reader's input of an edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.mechanisms.parts import Edge
from vitrify.optional import need

if TYPE_CHECKING:
    from torch import Tensor
    from transformer_lens import HookedTransformer

EXTRA = "transformer-lens"


def written(model: HookedTransformer, cache: Mapping[str, Tensor], node: JsonObject) -> Tensor:
    """Return the vectors that a node adds to the residual stream [word, pos, model]."""
    kind, block = node["kind"], node["block"]
    if kind == "embedding":
        return cache["hook_embed"]
    if kind == "positions":
        return cache["hook_pos_embed"].expand_as(cache["hook_embed"])
    if kind == "head":
        head = node["index"]
        return cache[f"blocks.{block}.attn.hook_z"][:, :, head] @ model.W_O[block, head]
    if kind != "units":
        raise InputError(f"TransformerLens has no node of the kind {kind!r}")
    return cache[f"blocks.{block}.mlp.hook_post"][..., node["units"]] @ model.W_out[block][node["units"]]


def answers(metric: JsonObject, logits: Tensor) -> Tensor:
    """Return the values that the metric compares: largest logits, signs, probabilities, or the logits themselves."""
    torch = need("torch", EXTRA)
    if metric["kind"] == "largest":
        return (logits >= logits.max(dim=-1, keepdim=True).values - metric["tolerance"]).double()
    if metric["kind"] == "signs":
        return (logits > metric["tolerance"]).double()
    if metric["kind"] == "probabilities":
        if metric["scores"] == "linear":
            total = logits.sum(-1, keepdim=True)
            return torch.where(total > metric["tie"], logits / total, 0.0)
        return logits.softmax(-1) if metric["scores"] == "softmax" else logits.exp()  # log-probabilities
    return logits


def effect(
    model: HookedTransformer, tokens: Tensor, logits: Tensor, delta: Tensor, nodes: Mapping[str, JsonObject], port: str
) -> Tensor:
    """Return the logits when `delta` is added to what a port reads from the residual stream."""
    if port == "output":
        return logits + delta @ model.W_U
    letter = port[-1]
    slot: tuple[object, ...]
    if port[-2:] in (".q", ".k", ".v"):
        node = nodes[port[:-2]]
        block, head = node["block"], node["index"]
        matrix = {"q": model.W_Q, "k": model.W_K, "v": model.W_V}[letter][block, head]
        name, slot = f"blocks.{block}.attn.hook_{letter}", (Ellipsis, head, slice(None))
    else:
        node = nodes[port]
        matrix = model.W_in[node["block"]][:, node["units"]]
        name, slot = f"blocks.{node['block']}.mlp.hook_pre", (Ellipsis, node["units"])

    def add_delta(seen: Tensor, **_: object) -> Tensor:
        seen = seen.clone()
        seen[slot] += delta @ matrix
        return seen

    return model.run_with_hooks(tokens, fwd_hooks=[(name, add_delta)])


def patched_paths(model: HookedTransformer, question: JsonObject) -> dict[Edge, float]:
    """Return for each edge the share of answers that change when this edge alone carries its value on the donor."""
    torch = need("torch", EXTRA)
    nodes = {node["name"]: node for node in question["nodes"]}
    metric, scores = question["metric"], {(str(a), str(b)): 0.0 for a, b in question["edges"]}
    total = 0
    with torch.no_grad():
        for part in question["domain"]:
            words, (first, donor) = torch.tensor(part["tokens"]), torch.tensor(part["pairs"]).T
            positions, tokens = torch.tensor(part["donor_positions"]), words[first]
            queried = torch.tensor(part["mask"], dtype=torch.bool)[first]
            total += int(queried.sum())
            _, cache = model.run_with_cache(words)
            logits = model(tokens)
            outputs = {name: written(model, cache, nodes[name]) for name in {edge[0] for edge in scores}}
            for source, port in scores:
                delta = outputs[source][donor[:, None], positions] - outputs[source][first]
                patched = effect(model, tokens, logits, delta, nodes, port)
                moved = (answers(metric, patched) - answers(metric, logits)).abs().amax(dim=-1)
                threshold = metric["tolerance"] if metric["kind"] in ("probabilities", "values") else 0.5
                scores[source, port] += float(((moved > threshold) & queried).sum())
    return {edge: count / total for edge, count in scores.items()}
