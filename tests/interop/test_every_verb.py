"""Every verb on networks that the libraries themselves wrote, and specs of models that are no networks of ours.

These tests need the extra `interop`; without a library its tests are skipped with a sentence that says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitrify as v
from command_line import vitrify
from vitrify.spec.automata.families import cyclic

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # what libraries warn of is their business
EXAMPLES = Path(__file__).parents[2] / "examples"
LIBRARIES = {"torch": "torch", "hf": "transformers", "transformer-lens": "transformer_lens", "onnx": "onnxruntime"}
WORDS = {"parity": ["1", "0", "1"], "weather": ["sun", "rain"]}
TORCH = '''
import torch

class Parity(torch.nn.Module):
    """The running sign of a product: one unit of memory, which letter 2 flips."""

    def __init__(self, stuck):
        super().__init__()
        self.stuck = stuck
        self.scale = torch.nn.Parameter(torch.tensor(3.0))

    def forward(self, tokens):
        count = (tokens == 2).cumsum(1).clamp(max=self.stuck)
        even = 1.0 - 2.0 * (count % 2)
        return self.scale * torch.stack([-even, even], -1)

def parity(vocabulary, length, seed):
    return Parity(10**6)

def stuck(vocabulary, length, seed):
    return Parity(4)

def raises(vocabulary, length, seed):
    raise RuntimeError("no weights here")
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'vitrify[interop]'")
    place = tmp_path_factory.mktemp("nets")
    cyclic(2).write(place / "parity.automaton.json")
    (place / "weather.arpa").write_bytes((EXAMPLES / "weather.arpa").read_bytes())
    for name, spec in (("parity", "parity.automaton.json"), ("weather", "weather.arpa")):
        answer("build", place / spec, "-o", place / name, "--max-length", 6)
    return place


def answer(*words: object, code: int = 0, cwd: Path | None = None) -> Any:
    done = vitrify(*words, "--json", cwd=cwd or Path())
    assert done.returncode == code, (words, done.stdout, done.stderr)
    return json.loads(done.stdout) if code < 2 else done.stderr


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("target", LIBRARIES)
def test_every_verb_takes_what_a_library_wrote_and_what_was_read_back(
    folder: Path, name: str, target: str, tmp_path: Path
) -> None:
    library = LIBRARIES[target]
    pytest.importorskip("aalpy", reason="aalpy is not installed: pip install 'vitrify[extract]'")
    pytest.importorskip(library, reason=f"{library} is not installed: pip install 'vitrify[interop]'")
    (spec,) = folder.glob(f"{name}.*")
    answer("export", folder / name, "--to", target, "--dtype", "float64", "-o", tmp_path / "out")
    answer("import", tmp_path / "out", "-o", tmp_path / "back")
    right = answer("run", folder / name, *WORDS[name])
    for net in (tmp_path / "out", tmp_path / "back"):
        said = answer("run", net, *WORDS[name])
        key = "states" if name == "parity" else "next"
        assert said[key] == right[key] if name == "parity" else said[key] == pytest.approx(right[key], abs=1e-9)
        assert answer("info", net)["digest"] == v.load(net).digest
        assert len(answer("explain", net)["heads"]) == sum(v.load(net).architecture.heads_per_layer)
        assert v.trace(v.load(net), WORDS[name])["hook_logits"].shape[1] == len(v.load(net).architecture.output.symbols)
        evidence = answer("certify", net, "--spec", spec, "--max-length", 4)
        assert evidence["verdict"] == "holds"
        assert answer("recheck", evidence["folder"])["agrees"]
        kind = "automaton" if name == "parity" else "ngram"
        extracted = answer("extract", net, "--as", kind, "--max-length", 4, "-o", tmp_path / f"read-{spec.name}")
        assert extracted["evidence"]["verdict"] == "holds"
        if name == "parity":
            assert v.read(tmp_path / f"read-{spec.name}") == cyclic(2)
        else:
            assert len(answer("run", net, "sun", "--generate", 3, "--seed", 1)["thought"]) >= 1
        assert vitrify("run", net, "nonsense").returncode == 2
        assert vitrify("certify", net, "--spec", "symmetric_group:3").returncode == 2


def test_a_torch_module_is_extracted_by_its_answers(folder: Path, tmp_path: Path) -> None:
    del folder
    pytest.importorskip("aalpy", reason="aalpy is not installed: pip install 'vitrify[extract]'")
    (tmp_path / "mine.py").write_text(TORCH, encoding="utf-8")
    words = ("extract", "--symbols", "a,b", "--answers", "no,yes", "--longest", 12, "--max-length", 8)
    said = answer(*words, "--model", "mine.py:parity", "-o", "read.automaton.json", cwd=tmp_path)
    assert said["evidence"]["verdict"] == "holds"
    spec = v.read(tmp_path / "read.automaton.json")
    assert isinstance(spec, v.Automaton)
    assert [spec.accepts(word) for word in ("", "a", "ab", "abb", "bab")] == [True, True, False, True, True]
    counter = answer(*words, "--model", "mine.py:stuck", "--as", "counter", "-o", "four.automaton.json", cwd=tmp_path)
    facts = {each["name"]: each["measured"] for each in counter["evidence"]["quantities"]}
    assert (facts["letter a"], facts["letter b"]) == ("does not matter", "counted up to 4")
    for target, message in (
        ("mine.py:raises", "raised RuntimeError: no weights here"),
        ("mine.py:nothing", "must have a factory nothing"),
        ("none.py:parity", "there is no file none.py"),
    ):
        refusal = answer(*words, "--model", target, code=2, cwd=tmp_path)
        assert message in refusal
        assert refusal.count("\n") == 1
    refusal = answer(
        "extract", "--symbols", "a,b", "--answers", "x,y,z", "--model", "mine.py:parity", code=2, cwd=tmp_path
    )
    assert "must return logits [batch, position, answer]" in refusal


def test_symbols_of_a_hugging_face_model_are_tokens_of_its_tokenizer(folder: Path, tmp_path: Path) -> None:
    """A random GPT-2 with the tokenizer of an export, once by names and once by numbers of tokens."""
    torch, transformers = (pytest.importorskip(name) for name in ("torch", "transformers"))
    answer("export", folder / "weather", "--to", "hf", "-o", tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer), "n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 9}
    config = transformers.GPT2Config(**sizes, bos_token_id=tokenizer.bos_token_id, initializer_range=0.5)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "numbers")
    transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "numbers").save_pretrained(tmp_path / "names")
    tokenizer.save_pretrained(tmp_path / "names")
    names = ("rain", "snow", "sun")
    ids = tokenizer.convert_tokens_to_ids(list(names))
    laws = {}
    for place, symbols in (("names", names), ("numbers", list(map(str, ids)))):
        words = ("extract", "--model", f"hf:{tmp_path / place}", "--as", "ngram", "--max-length", 4, "--order", 2)
        said = answer(*words, "--symbols", ",".join(symbols), "--tolerance", 9, "-o", tmp_path / f"{place}.arpa")
        assert said["words"] == 3**4 + 3**2
        spec: Any = v.read(tmp_path / f"{place}.arpa")
        law = np.exp(spec.next_log_probs([[], [symbols[0]], [symbols[2]]]))
        laws[place] = law[:, [spec.predicted.index(symbol) for symbol in symbols]]
    assert np.allclose(laws["names"], laws["numbers"], atol=1e-9)
    refusal = answer(
        "extract", "--model", f"hf:{tmp_path / 'names'}", "--symbols", "rain,hail", "--as", "ngram", code=2
    )
    assert "'hail' is not one token" in refusal


def test_laws_of_a_hugging_face_model_are_those_of_its_forward_pass(folder: Path, tmp_path: Path) -> None:
    """A random GPT-2 without a tokenizer: tokens 3, 5 and 7 as symbols, against its logits among these three."""
    del folder
    torch, transformers = (pytest.importorskip(name) for name in ("torch", "transformers"))
    torch.manual_seed(0)
    sizes = {"vocab_size": 11, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 9, "bos_token_id": 2}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, initializer_range=0.5)).eval()
    model.save_pretrained(tmp_path / "gpt")
    words = ("extract", "--model", f"hf:{tmp_path / 'gpt'}", "--as", "ngram", "--max-length", 4, "--order", 2)
    said = answer(*words, "--symbols", "3,5,7", "--tolerance", 9, "-o", tmp_path / "read.arpa")
    assert said["known"].startswith("context of 1 symbol:")
    spec: Any = v.read(tmp_path / "read.arpa")
    with torch.no_grad():
        logits = model(torch.tensor([[2]])).logits[0, -1, [3, 5, 7]].double().numpy()
    first = np.exp(spec.next_log_probs([[]]))[0]
    got = first[[spec.predicted.index(name) for name in ("3", "5", "7")]]
    assert np.allclose(got, np.exp(logits) / np.exp(logits).sum(), atol=1e-6)
    for symbols, message in (("3,99", "has no tokenizer"), ("sun,rain", "has no tokenizer")):
        assert message in answer(*words, "--symbols", symbols, code=2)
    assert "must be a Hugging Face folder" in answer(
        "extract", "--model", "hf:none", "--symbols", "a,b", "--as", "ngram", code=2
    )
