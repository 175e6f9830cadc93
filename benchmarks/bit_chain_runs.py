"""Train whole one-layer transformers on chains of bits all over the square of p and q, for the landscape explorer.

    python benchmarks/bit_chain_runs.py

The networks, the recipe and the starts are those of the claim L2. Every network leaves its loss over the steps, and its
way in the plane of the low-rank form: |e|, and the w whose contrast e² (1 + 2w|w|) is the network's own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from vitrify.claims.tied_transformers_learn_a_markov_chain_only_if_p_plus_q_is_below_1 import KINDS, RECIPE
from vitrify.learn.models.scalar import ScalarFamily
from vitrify.learn.train import train
from vitrify.report.landscape import FILE
from vitrify.report.recorded import place
from vitrify.sandboxes.markov import Markov

VALUES = (0.1, 0.3, 0.5, 0.7, 0.9)
MORE = ((0.2, 0.3), (0.5, 0.8))
SEEDS, LENGTH, MARKS = 3, 64, 3


def numbers(net: Any, arrays: Any, row: Any, seen: Mapping[str, Any]) -> Any:
    """The norm of the embedding, and the contrast: the mean logit of a 1 after 1, less that after 0."""
    del net
    logits = seen["hook_logits"]
    of_one = logits[..., 1] - logits[..., 0]
    after = [jnp.where(row.tokens == bit, of_one, 0).sum() / (row.tokens == bit).sum() for bit in (0, 1)]
    return jnp.stack([jnp.linalg.norm(arrays["embed.W_E"][2]), after[1] - after[0]])


def units(e: float, contrast: float) -> float:
    """The w with that contrast."""
    gain = contrast / e**2 - 1
    return float(np.sign(gain) * np.sqrt(abs(gain) / 2))


def main() -> None:
    chains = [*((p, q) for p in VALUES for q in VALUES if abs(p + q - 1) > 1e-9), *MORE]
    members = [(*chain, *kind) for kind in KINDS.values() for chain in chains]
    began = time.perf_counter()
    runs = train(
        ScalarFamily(),
        Markov(length=LENGTH),
        axes={"p,q,tied,e,w": members},
        members=SEEDS,
        recipe=replace(RECIPE, evals_per_doubling=MARKS),
        probes={"numbers": numbers},
        callback=lambda event: print(event.step, f"{event.seconds_left:.0f} s left", flush=True),
    )
    names = {kind: name for name, kind in KINDS.items()}
    found: dict[tuple[str, float, float], dict[str, Any]] = {}
    for run in runs:
        chain, model = run.identity["sandbox"], run.identity["model"]
        kind = names[model["tied"], model["e"], model["w"]]
        new = {"kind": kind, "p": chain["p"], "q": chain["q"], "loss": [], "way": []}
        one = found.setdefault((kind, chain["p"], chain["q"]), new)
        one |= {"floor": round(run.last["floor"], 5), "alone": round(run.last["floor.unigram"], 5)}
        one["loss"].append([round(point["loss"], 5) for point in run.curve])
        ways = [np.asarray(point["numbers"]).tolist() for point in run.curve]
        one["way"].append([[round(e, 4), round(units(e, contrast), 4)] for e, contrast in ways])
    known = {
        "networks": len(runs),
        "d": ScalarFamily().d_model,
        "seeds": SEEDS,
        "length": LENGTH,
        "steps": [point["step"] for point in runs[0].curve],
        "measured on": place(),
        "seconds": round(time.perf_counter() - began, 1),
    }
    lines = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in found.values())
    head = json.dumps(known, ensure_ascii=False)[1:-1]
    FILE.write_text(f'{{{head},\n"chains":[\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{len(runs)} networks in {known['seconds']} s → {FILE}")


if __name__ == "__main__":
    main()
