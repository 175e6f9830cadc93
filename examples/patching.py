"""Find a circuit that is known: path patching in TransformerLens on an exported network, and its score."""

# %% The induction network of the zoo, with its question in one file and its circuit in another.
import json
import tempfile
from pathlib import Path

from vitrify.interop.export import export
from vitrify.interop.lens_loading import load
from vitrify.interop.lens_patching import patched_paths
from vitrify.mechanisms.puzzle import puzzle, result_json, write
from vitrify.mechanisms.score import score_files

folder = Path(tempfile.mkdtemp())
write(puzzle("induction"), folder)
print(*sorted(path.name for path in (folder / "induction").iterdir()))

# %% Into TransformerLens: `pip install 'vitrify[transformer-lens]'`. Answers are compared before it is written.
print(export(folder / "induction", "transformer-lens", folder / "lens", precision="float64").equality.layout)
model = load(folder / "lens")

# %% Every edge carries once what it carries on another word; the method sees the model and the question only.
question = json.loads((folder / "induction" / "question.json").read_text())
effects = patched_paths(model, question)
for (source, port), share in effects.items():
    if share:
        print(f"{source:22} → {port:24} {share:.2f} of the answers")

# %% How good is that?
result = folder / "result.json"
result.write_text(json.dumps(result_json("induction", scores=effects)))
found = score_files(folder / "answers" / "induction.json", result)
print("plain:", found.edges, "AUC", found.auc, "faithfulness", found.faithfulness)

# %% The entangled twin: the same function from other weights, with decoys. Its circuit is found all the same.
twin = folder / "twin"
write(puzzle("induction", seed=3), twin)
export(twin / "induction", "transformer-lens", twin / "lens", precision="float64")
question = json.loads((twin / "induction" / "question.json").read_text())
effects = patched_paths(load(twin / "lens"), question)
result.write_text(json.dumps(result_json("induction", scores=effects)))
found = score_files(twin / "answers" / "induction.json", result)
print("twin:", found.edges, "AUC", found.auc, "faithfulness", found.faithfulness)

# %% Wrong circuits score less: the strongest edge left out, or a decoy that composes with everything put in.
true = [edge for edge, share in effects.items() if share]
strongest = max(true, key=lambda edge: effects[edge])
for name, edges in (
    ("an edge less", [edge for edge in true if edge != strongest]),
    ("an edge more", [*true, next(edge for edge in effects if not effects[edge])]),
):
    result.write_text(json.dumps(result_json("induction", edges)))
    wrong = score_files(twin / "answers" / "induction.json", result)
    print(f"{name}:", wrong.edges, "faithfulness", round(wrong.faithfulness or 0, 3))
