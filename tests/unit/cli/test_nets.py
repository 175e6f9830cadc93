"""Every verb on every network: a model folder, a run, a checkpoint, an export, and the same read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitrify as v
from command_line import vitrify
from vitrify.certification.checks.divergence import DIVERGENCE
from vitrify.errors import InputError, StoreError
from vitrify.interop import export as exports
from vitrify.interop import hf_stock, huggingface, torch_folder, transformer_lens
from vitrify.interop.imports import import_folder
from vitrify.learn.store import RunStore
from vitrify.net.sparse import dense
from vitrify.spec.automata.families import cyclic
from vitrify.web import app
from vitrify.web.looking import look

pytestmark = pytest.mark.jax

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = ["steps=1", "batch=4", "test_examples=16", "--checkpoints", "2"]


class OurPass:
    """The torch layout, read back by our own forward pass where torch is not installed."""

    EXTRA = "torch"
    refusal, write = staticmethod(torch_folder.refusal), staticmethod(torch_folder.write)

    def runner(self, folder: Path, precision: Any) -> Callable[[Any], Any]:
        net = v.load(folder).map(lambda array: dense(array).astype(precision))
        return lambda inputs: np.asarray(net.architecture.forward(net.arrays, inputs))


class Networks:
    """References to networks that are the same function of words: `(spec, kind)` → what a user types."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        cyclic(2).write(folder / "parity.automaton.json")
        self.specs = {"parity": folder / "parity.automaton.json", "weather": EXAMPLES / "weather.arpa"}
        self.words = {"parity": ["1", "0", "1"], "weather": ["sun", "rain"]}
        runs = {
            "parity": ["regular", "built", "automaton=cyclic:2", "mode=states", "length=6"],
            "weather": ["ngram", "built", f"model={self.specs['weather']}", "apart=true", "length=6"],
        }
        monkeypatch.setattr(exports, "import_module", lambda _name: OurPass())
        for name, spec in self.specs.items():
            self._did("build", spec, "-o", folder / name, "--max-length", 6)
            store = folder / f"{name}-runs"
            self._did("train", *runs[name], f"folder={folder / name}", *SMALL, "--store", store)
            self._did("export", f"{store}/best@0", "--to", "torch", "-o", folder / f"{name}-torch")
            self._did("export", folder / name, "--to", "torch", "--dtype", "float64", "-o", folder / f"{name}-float64")
            import_folder(folder / f"{name}-torch", folder / f"{name}-back")
            for layout in (hf_stock, huggingface, transformer_lens):  # written and read without their libraries
                place = folder / f"{name}-{layout.__name__.rpartition('.')[2]}"
                place.mkdir()
                layout.write(v.load(f"{store}/best@0"), place, "float64")

    def _did(self, *words: object) -> None:
        done = vitrify(*words)
        assert done.returncode == 0, done.stderr

    def reference(self, name: str, kind: str) -> str:
        store = f"{self.folder}/{name}-runs"
        (record,) = RunStore(store).runs()
        return {
            "model folder": f"{self.folder}/{name}",
            "store": store,
            "run": f"{store}/{record.id}",
            "beginning of an id": f"{store}/{record.id[:6]}",
            "best by a query": f"{store}/best:steps=1",
            "checkpoint": f"{store}/{record.id}@0",
            "export": f"{self.folder}/{name}-torch",
            "export in float64": f"{self.folder}/{name}-float64",
            "reimported": f"{self.folder}/{name}-back",
            "GPT-2": f"{self.folder}/{name}-hf_stock",
            "Hugging Face": f"{self.folder}/{name}-huggingface",
            "TransformerLens": f"{self.folder}/{name}-transformer_lens",
        }[kind]


KINDS = ["model folder", "store", "run", "beginning of an id", "best by a query", "checkpoint"]
KINDS += ["export", "export in float64", "reimported", "GPT-2", "Hugging Face", "TransformerLens"]


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Networks(tmp_path_factory.mktemp("nets"), monkeypatch)


def answer(*words: object, code: int = 0, given: str | None = None) -> Any:
    done = vitrify(*words, "--json", given=given)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    assert (done.stderr == "") == (code < 2)
    return json.loads(done.stdout) if code < 2 else done.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["parity", "weather"])
def test_every_verb_takes_every_net(
    nets: Networks, name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, words, spec = nets.reference(name, kind), nets.words[name], nets.specs[name]
    weights = v.load(net)
    built = v.load(nets.reference(name, "model folder"))

    # run: the answers of the built network, as exactly as it is the same one
    said, right = answer("run", net, *words), answer("run", nets.reference(name, "model folder"), *words)
    if name == "parity":
        assert said["states"] == right["states"] == ["0", "1", "1", "0"]
    else:
        near = 1e-6 if kind not in ("store", "run", "beginning of an id", "best by a query") else 0.1
        assert said["next"] == pytest.approx(right["next"], abs=near)
    assert answer("run", net, "--stdin", given=" ".join(words)) == said
    assert vitrify("run", net, *words, "--trace").stdout.count("head") >= 1
    # generate
    if name == "weather":
        assert len(answer("run", net, "sun", "--generate", 3, "--seed", 1)["thought"]) >= 1
        assert [len(each.symbols) > 0 for each in v.generate(weights, [["sun"]], 3)] == [True]
    else:
        assert answer("run", net, "--generate", 3, code=2).count("\n") == 1
    # info, explain, trace
    assert answer("info", net)["digest"] == weights.digest
    assert answer("info", net)["sizes"]["dense"] == built.sizes.dense
    explained = answer("explain", net)
    labelled = kind in ("model folder", "export in float64")
    assert bool(explained["spaces"]) == labelled
    assert bool(explained["measured"]) == (not labelled)
    assert len(explained["heads"]) == sum(built.architecture.heads_per_layer)
    assert v.trace(weights, words)["hook_logits"].shape[1] == len(built.architecture.output.symbols)
    # serve: the app shows it on the same words
    served: list[Any] = []
    monkeypatch.setattr(app, "serve", served.append)
    assert vitrify("serve", net).returncode == 0
    assert served[0].nets == (net,)
    shown = look(net, words)
    assert shown["tokens"][-len(words) :] == words
    assert len(shown["heads"]) == sum(built.architecture.heads_per_layer)
    # perplexity
    if name == "weather":
        (tmp_path / "text").write_text("sun rain\nrain\n")
        ours, theirs = (answer("perplexity", one, tmp_path / "text") for one in (net, spec))
        assert ours["perplexity_including_oov"] == pytest.approx(theirs["perplexity_including_oov"], rel=0.05)
    # certify and recheck
    holds = name == "parity" or kind in ("model folder", "export in float64")  # one step, and rounding, move shares
    evidence = answer("certify", net, "--spec", spec, "--max-length", 4, code=0 if holds else 1)
    assert evidence["verdict"] == ("holds" if holds else "fails")
    opinion = answer("recheck", evidence["folder"], code=0 if holds else 1)
    assert opinion["agrees"] == holds
    if kind not in ("model folder", "reimported"):  # where a certificate has a place of its own
        assert answer("recheck", net, code=0 if holds else 1)["agrees"] == holds
    if not holds:  # one within a stated error, which is part of the certificate
        near = answer("certify", net, "--spec", spec, "--max-length", 4, "--max-error", 0.2)
        facts = {each["name"]: each for each in near["quantities"]}
        assert facts["largest error"]["declared"] == 0.2
        assert 0 < facts["largest error"]["measured"] <= 0.2
        assert 0 <= facts[DIVERGENCE]["measured"] < 0.2
        assert "within 0.2" in vitrify("certify", net, "--spec", spec, "--max-length", 4, "--max-error", 0.2).stdout
        assert answer("recheck", near["folder"])["agrees"]
        answer("certify", net, "--spec", spec, "--max-length", 4, "--max-error", 1e-8, code=1)
    # export, and back
    answer("export", net, "--to", "torch", "--dtype", "float64", "-o", tmp_path / "out")
    assert v.load(tmp_path / "out").digest == weights.digest
    assert import_folder(tmp_path / "out", tmp_path / "back").whole


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (["run", "NET", "nonsense"], "this network does not read 'nonsense'"),
        (["run", "NET", *["1"] * 7], "the sequence has 7 tokens"),
        (["run", "NET", "1", "--trace", "--stdin"], "--stdin reads the sequences"),
        (["certify", "NET", "--spec", "symmetric_group:3"], "do not speak about the same symbols"),
        (["certify", "NET", "--spec", EXAMPLES / "weather.arpa"], "there is no oracle for"),
        (["certify", "NET", "--spec", "none.regex"], "none.regex"),
        (["certify", "NET", "--spec", "cyclic:2", "--max-error", "0.1"], "--max-error is about probabilities and"),
        (["explain", "NET", "--formula"], "formula"),
    ],
)
def test_what_a_net_does_not_take_is_one_message(nets: Networks, verb: list[Any], message: str, kind: str) -> None:
    done = vitrify(*(nets.reference("parity", kind) if word == "NET" else word for word in verb))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_references_that_name_no_net_say_what_would(nets: Networks, monkeypatch: pytest.MonkeyPatch) -> None:
    store = f"{nets.folder}/parity-runs"
    (record,) = RunStore(store).runs()
    for reference, message in {
        "nowhere": "is neither a folder nor a run",
        f"{store}/0000": "there is no run 0000",
        f"{store}/{record.id}@7": "no checkpoint of step 7: it has those of 0, 1",
        f"{store}/best:seed=5": "no finished run",
        f"{store}/best:nope=1": "no run has a value 'nope'",
    }.items():
        for verb in ("run", "info", "explain", "certify", "recheck"):
            done = vitrify(verb, reference)
            assert done.returncode == 2
            assert message in done.stderr
    mixed = RunStore(nets.folder / "mixed")
    for p in (0.1, 0.2):
        run = mixed.open({"sandbox": {"name": "markov", "p": p}, "seed": 0})
        run.finish({"excess": p}, {"w": np.ones(1)})
    with pytest.raises(InputError, match="the best of 2 sandboxes"):
        v.load(f"{nets.folder}/mixed")
    with pytest.raises(StoreError, match="its architecture is not recorded"):
        v.load(f"{nets.folder}/mixed/best:p=0.1")
    monkeypatch.setenv("VITRIFY_STORE", store)
    assert v.load("best").digest == v.load(record.id).digest == v.load(store).digest


def test_a_run_is_the_net_that_was_trained_and_a_checkpoint_the_net_on_the_way(tmp_path: Path) -> None:
    recipe = v.Recipe(steps=4, batch=4, test_examples=16, evals_per_doubling=0, checkpoints=3)
    model, chain = v.model("transformer", layers=1, heads=1, d_model=4, units=4), v.sandbox("markov", length=6)
    store = RunStore(tmp_path / "runs")
    runs = v.train(model, chain, members=3, recipe=recipe, store=store)
    best = min(runs, key=lambda run: run.last["excess"])
    assert v.load(f"{tmp_path}/runs").about["run"] == best.id
    for run in runs:
        assert [point["step"] for point in run.curve] == recipe.checkpoint_steps() == [0, 1, 4]
        last, kept = v.load(f"{tmp_path}/runs/{run.id}"), v.load(f"{tmp_path}/runs/{run.id}@4")
        for name, array in run.weights.arrays.items():
            assert (last.arrays[name] == array).all()
            assert (kept.arrays[name] == array).all()
        begun = v.load(f"{tmp_path}/runs/{run.id}@0")
        short = v.Recipe(steps=0, batch=4, test_examples=16)
        first = v.train(model, chain, axes={"seed": [run.identity["seed"]]}, recipe=short)[0]
        assert all((begun.arrays[name] == array).all() for name, array in first.weights.arrays.items())
        assert last.architecture.inputs[1:] == chain.symbols
        words = ["0", "1", "1"]
        ours, theirs = last(words), run.weights(words)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_classifier_of_prefixes_is_judged_by_an_automaton(tmp_path: Path) -> None:
    words = ["recurrent", "kind=signed", "state=4", "d_embed=4", "length=4", "steps=1", "batch=4", "test_examples=16"]
    assert vitrify("train", "regular", *words, "--store", tmp_path / "runs").returncode == 0
    net = v.load(f"{tmp_path}/runs")
    done = answer("certify", f"{tmp_path}/runs", "--spec", "cyclic:2", code=1)
    word = done["witness"]["word"]
    said = net(word)[-1]
    assert net.architecture.output.symbols == ("no", "yes")
    assert done["witness"]["expected"] == ("no", "yes")[word.count("1") % 2 == 0]
    assert done["witness"]["actual"] == ("no", "yes")[int(said.argmax())] != done["witness"]["expected"]
    swapped = answer("certify", f"{tmp_path}/runs", "--spec", "cyclic:2", "--accepting", "no", "--no-write", code=1)
    other = swapped["witness"]["word"]
    assert ("no", "yes")[other.count("1") % 2 == 0] == swapped["witness"]["expected"]
    assert ("yes", "no")[int(net(other)[-1].argmax())] == swapped["witness"]["actual"]
    assert (
        "--accepting is for classifiers"
        in vitrify("certify", f"{tmp_path}/runs", "--spec", EXAMPLES / "weather.arpa", "--accepting", "no").stderr
    )
