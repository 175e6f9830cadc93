"""Model folders: nothing lost, the same bytes, nothing left behind by a failure, and one clear word on every damage."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_array

from nets import copycat, mixed, random_arrays, random_net
from vitrify.errors import FolderError
from vitrify.net import folder as folder_module
from vitrify.net.folder import load, save, spec_path
from vitrify.net.sparse import dense, is_sparse
from vitrify.net.weights import Weights
from vitrify.spec.kinds import Spec

NETS: dict[str, Callable[[], Weights]] = {
    "dense": lambda: random_net(mixed(norm=True, eps=1e-5)),
    "sparse": lambda: copycat(sparse=True),
    "single": lambda: copycat().map(lambda array: array.astype(np.float32)),
}


class Note(Spec):
    """A spec that is one line of text."""

    suffix = ".txt"

    @classmethod
    def read(cls, path: str | Path) -> Note:
        raise NotImplementedError

    @classmethod
    def samples(cls) -> dict[str, Spec]:
        return {"note": cls()}

    def to_text(self) -> str:
        return "a spec\n"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def complaint(folder: Path, *, verify: bool = True) -> str:
    """What is said about a folder; a message is one line, and no cause is shown with it."""
    with pytest.raises(FolderError) as caught:
        load(folder, verify=verify)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(folder), "DIR")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    save(copycat(sparse=True), folder, Note())
    return folder


@pytest.mark.parametrize("make", NETS.values(), ids=NETS.keys())
def test_loading_undoes_saving(tmp_path: Path, make: Callable[[], Weights]) -> None:
    weights = make()
    save(weights, tmp_path / "new" / "model")
    again = load(tmp_path / "new" / "model")
    assert again.architecture == weights.architecture
    assert again.architecture.name == weights.architecture.name
    assert again.labels == weights.labels
    assert again.about == weights.about
    assert again.digest == weights.digest
    for name, array in weights.arrays.items():
        assert is_sparse(again.arrays[name]) == is_sparse(array)
        assert again.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(dense(again.arrays[name]), dense(array))


def test_arrays_in_any_memory_order_survive(tmp_path: Path) -> None:
    net = mixed()
    arrays = random_arrays(net, 0)
    turned = {name: np.asfortranarray(array) for name, array in arrays.items()}
    turned["embed.W_E"] = np.repeat(arrays["embed.W_E"], 2, axis=1)[:, ::2]
    turned["unembed.W_U"] = arrays["unembed.W_U"][::-1][::-1].T.copy().T
    assert not turned["embed.W_E"].flags.c_contiguous
    save(Weights(net, turned), tmp_path / "model")
    for name, array in load(tmp_path / "model").arrays.items():
        np.testing.assert_array_equal(array, arrays[name])


def test_the_files(model: Path) -> None:
    assert set(files(model)) == {"README.md", "config.json", "labels.json", "model.safetensors", "spec.txt"}
    assert spec_path(model) == model / "spec.txt"
    card = (model / "README.md").read_text(encoding="utf-8")
    assert "# copycat" in card
    assert "| construction | by hand |" in card
    assert "| 0.0 | one step back | previous | 1 | 2.5 | 0 |" in card
    assert "| 1 | 1 | 4 | 0 | 8 |" in card  # layers, heads, width, units, non-zero
    assert model.stat().st_mode & 0o777 == 0o755


def test_a_folder_without_a_spec_says_so(tmp_path: Path, model: Path) -> None:
    save(copycat(), tmp_path / "other")
    with pytest.raises(FolderError, match="holds no spec to check the network against"):
        spec_path(tmp_path / "other")
    (model / "spec.txt").unlink()
    with pytest.raises(FolderError, match=r"not a complete model folder: spec\.txt is missing"):
        spec_path(model)


@pytest.mark.parametrize("make", NETS.values(), ids=NETS.keys())
def test_the_same_net_gives_the_same_bytes(tmp_path: Path, make: Callable[[], Weights]) -> None:
    weights = make()
    save(weights, tmp_path / "one")
    backwards = Weights(
        weights.architecture, dict(reversed(list(weights.arrays.items()))), weights.labels, weights.about
    )
    save(backwards, tmp_path / "two")
    save(load(tmp_path / "one"), tmp_path / "three")
    assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "three")


@pytest.mark.long
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from nets import copycat; from vitrify.net.folder import save; "
        "save(copycat(sparse=True), Path(sys.argv[1]))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", program, str(tmp_path / seed)], check=True, env=environment)
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_an_own_folder_is_replaced(model: Path) -> None:
    save(random_net(mixed()), model)
    assert load(model).architecture == mixed()
    assert "spec.txt" not in files(model)
    assert names(model.parent) == ["model"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    save(copycat(), tmp_path / "model")
    assert load(tmp_path / "model").digest == copycat().digest


def test_the_current_folder_is_replaced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path / "model")
    save(copycat(), Path())
    assert names(tmp_path) == ["model"]
    assert load(tmp_path / "model").digest == copycat().digest


def test_a_link_is_followed(tmp_path: Path, model: Path) -> None:
    (tmp_path / "link").symlink_to(model)
    save(random_net(mixed()), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(model).architecture == mixed()


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    for name, text in [("notes.txt", "mine"), ("config.json", '{"model_type": "gpt2"}')]:
        target = tmp_path / name.replace(".", "-")
        target.mkdir()
        (target / name).write_text(text)
        with pytest.raises(FolderError, match="exists and is not a model folder of vitrify: name another one"):
            save(copycat(), target)
        assert files(target) == {name: text.encode()}
    assert names(tmp_path) == ["config-json", "notes-txt"]


def test_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("mine")
    with pytest.raises(FolderError, match="is a file: name a folder to write to"):
        save(copycat(), tmp_path / "model")
    assert files(tmp_path) == {"model": b"mine"}


@pytest.mark.parametrize("step", ["card", "labels_to_json", "to_json", "_sha256", "_flat"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failure_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    save(copycat(), tmp_path / "old")
    before = files(tmp_path / "old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(folder_module, step, fail)
    for name in ("old", "new"):
        with pytest.raises(type(error)):
            save(random_net(mixed()), tmp_path / name)
    assert files(tmp_path / "old") == before
    assert names(tmp_path) == ["old"]


def test_a_missing_folder(tmp_path: Path) -> None:
    assert complaint(tmp_path / "none") == "DIR is not a folder: give the folder that 'vitrify build … -o' wrote"
    (tmp_path / "file").write_text("")
    assert "is not a folder" in complaint(tmp_path / "file")


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "labels.json"])
def test_a_missing_file(model: Path, name: str, verify: bool) -> None:
    (model / name).unlink()
    message = complaint(model, verify=verify)
    assert name in message
    assert "missing" in message or "No such file" in message


def test_a_missing_spec_or_card(model: Path) -> None:
    (model / "README.md").unlink()
    load(model)
    (model / "spec.txt").unlink()
    assert complaint(model) == "DIR is not a complete model folder: spec.txt is missing"
    load(model, verify=False)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "labels.json"])
def test_a_folder_in_place_of_a_file(model: Path, name: str) -> None:
    (model / name).unlink()
    (model / name).mkdir()
    assert f"DIR/{name} is not a regular file" in complaint(model)


@pytest.mark.parametrize("name", ["model.safetensors", "labels.json", "spec.txt"])
def test_a_flipped_bit_is_noticed_and_named(model: Path, name: str) -> None:
    data = bytearray((model / name).read_bytes())
    data[-2] ^= 1
    (model / name).write_bytes(data)
    message = complaint(model)
    assert message.startswith(f"DIR: {name} changed since the model was built: build it again, or ask")


def test_changed_weights_can_be_looked_at(tmp_path: Path) -> None:
    save(copycat(), tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # in the exponent of the last number
    path.write_bytes(data)
    assert complaint(tmp_path / "model").startswith("DIR: model.safetensors changed since")
    assert load(tmp_path / "model", verify=False).digest != copycat().digest


CONFIGS = [
    ("{", r"config.json:1: not JSON: Expecting property name"),
    ("", r"config.json:1: not JSON: Expecting value"),
    ("[]", "was not written by vitrify: its config.json does not say so"),
    ('{"model_type": "gpt2"}', "was not written by vitrify: its config.json does not say so"),
    ('{"format": "vitrify", "format_version": 99}', "has format version 99, this vitrify reads 2: build it again"),
    ('{"format": "vitrify"}', "has format version None"),
    ('{"format": "vitrify", "format_version": 2, "net": []}', "config.json lacks net, about, sha256"),
]


@pytest.mark.parametrize(("text", "message"), CONFIGS)
def test_a_damaged_config(model: Path, text: str, message: str) -> None:
    (model / "config.json").write_text(text)
    assert message in complaint(model)


def test_a_config_in_another_encoding(model: Path) -> None:
    (model / "config.json").write_bytes(b'{"format": "\xff"}')
    assert complaint(model).startswith("DIR/config.json can't be read:")


def test_a_config_of_another_net(model: Path) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    for field, value, message in [
        ("d_model", 5, "embed.W_E is damaged: it must have shape (3, 5), has [3, 4]"),
        ("norm", True, "ln_final.w is missing"),
        ("blocks", [], "blocks.0.attn.W_Q is not part of this architecture"),
        ("pads", "1", 'net.pads must be a whole number from 0 to 1,099,511,627,776, not "1"'),
    ]:
        changed = {**config, "net": {**config["net"], field: value}}
        (model / "config.json").write_text(json.dumps(changed), encoding="utf-8")
        assert message in complaint(model)


@pytest.mark.parametrize("data", [b"", b"garbage", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0{}"], ids=repr)
@pytest.mark.parametrize("verify", [True, False])
def test_weights_that_are_garbage(model: Path, data: bytes, verify: bool) -> None:
    (model / "model.safetensors").write_bytes(data)
    wanted = (
        "model.safetensors changed since" if verify else "DIR/model.safetensors can't be read as weights of vitrify"
    )
    assert wanted in complaint(model, verify=verify)


@pytest.mark.parametrize("keep", [4, 100, -1])
def test_truncated_weights(model: Path, keep: int) -> None:
    (model / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:keep])
    assert "model.safetensors changed since" in complaint(model)
    assert "DIR/model.safetensors can't be read as weights of vitrify" in complaint(model, verify=False)


def rewrite(model: Path, changes: Mapping[str, NDArray[Any]], metadata: str | None = None) -> None:
    """The weights of a folder with some stored arrays or their metadata replaced, as another tool might write them."""
    path = model / "model.safetensors"
    with safe_open(path, framework="numpy") as file:
        kept = file.metadata()["vitrify"]
    save_file(load_file(path) | dict(changes), path, metadata={"vitrify": kept if metadata is None else metadata})


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["blocks.0.attn.beta", "unembed.W_U.data"])
def test_numbers_that_are_not_finite(model: Path, name: str, number: float) -> None:
    size = len(load_file(model / "model.safetensors")[name])
    rewrite(model, {name: np.full(size, number)})
    array = name.removesuffix(".data")
    assert complaint(model, verify=False) == f"DIR/model.safetensors: {array} holds a number that is not finite"


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("blocks.0.attn.beta", np.zeros(2), "blocks.0.attn.beta must have shape (1,), has (2,)"),
        ("unembed.b_U", np.zeros((2, 1)), "unembed.b_U must have shape (2,), has (2, 1)"),
        ("more", np.zeros(1), "more is not part of this architecture"),
        ("embed.W_E.indices", np.array([0, 9], dtype=np.int32), "the sparse array embed.W_E is damaged"),
        ("embed.W_E.indptr", np.array([0, 1, 2], dtype=np.int32), "the sparse array embed.W_E is damaged"),
        ("embed.W_E.data", np.zeros(1), "the sparse array embed.W_E is damaged"),
    ],
)
def test_arrays_of_the_wrong_shape(model: Path, name: str, array: NDArray[Any], message: str) -> None:
    rewrite(model, {name: array})
    assert message in complaint(model, verify=False)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("nonsense", "can't be read as weights of vitrify"),
        ("5", "can't be read as weights of vitrify"),
        ("{}", "can't be read as weights of vitrify: 'sparse'"),
        ('{"sparse": [1]}', "can't be read as weights of vitrify"),
        ('{"sparse": {"embed.W_E": 3}}', "the sparse array embed.W_E is damaged"),
        ('{"sparse": {"embed.W_E": [4, 4]}}', "the sparse array embed.W_E is damaged"),
        ('{"sparse": {"unembed.b_U": [2, 2]}}', "the sparse array unembed.b_U is damaged"),
        ('{"sparse": {}}', "embed.W_E.indices holds numbers of type int32, not float64"),
    ],
)
def test_metadata_that_do_not_fit(model: Path, metadata: str, message: str) -> None:
    rewrite(model, {}, metadata)
    assert message in complaint(model, verify=False)


def test_a_sparse_array_of_another_width(model: Path) -> None:
    shapes = {"embed.W_E": [3, 5], "pos_embed.W_pos": [6, 4], "unembed.W_U": [4, 2]}
    rewrite(model, {}, json.dumps({"sparse": shapes}))
    assert "embed.W_E is damaged: it must have shape (3, 4), has [3, 5]" in complaint(model, verify=False)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"spaces": [{"kind": "flag"}], "heads": [], "units": []}'])
def test_damaged_labels(model: Path, text: str) -> None:
    (model / "labels.json").write_text(text)
    assert "labels.json changed since" in complaint(model)
    assert "labels.json" in complaint(model, verify=False)


def test_all_changed_files_are_named(model: Path) -> None:
    for name in ("labels.json", "spec.txt"):
        (model / name).write_text("")
    assert complaint(model).startswith("DIR: labels.json, spec.txt changed since")


def test_a_copied_folder_is_whole(model: Path, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "copy")
    assert load(tmp_path / "copy").digest == copycat(sparse=True).digest


def test_a_sparse_array_is_stored_sparse(tmp_path: Path) -> None:
    net = mixed(d_model=2000, blocks=())
    arrays = random_arrays(net, 0) | {"pos_embed.W_pos": csr_array((9, 2000)), "unembed.W_U": csr_array((2000, 3))}
    save(Weights(net, arrays), tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors").stat().st_size < 8 * 4 * 2000 + 10_000


@pytest.mark.parametrize("name", ["../model/spec.txt", "/etc/hostname", "", "..", "a\x00b", None, 5, "x" * 5000])
def test_names_that_lead_out_of_the_folder_are_refused(model: Path, name: object) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"spec": name, "sha256": {str(name): "0"}}))
    assert "model folder" in complaint(model) or "can't be read" in complaint(model)
    with pytest.raises(FolderError):
        spec_path(model)


def test_links_are_not_followed(model: Path, tmp_path: Path) -> None:
    for name in ("config.json", "labels.json", "model.safetensors", "spec.txt"):
        (model / name).rename(tmp_path / name)
        (model / name).symlink_to(tmp_path / name)
        assert f"DIR/{name} is not a regular file" in complaint(model)
        (tmp_path / name).replace(model / name)
    load(model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": [0, 0, 0]}, "embed.W_E is damaged"),
        ({"indptr": [0, 2, 1, 3]}, "embed.W_E is damaged"),
        ({"indices": [0.0, 1.0, 2.0]}, "embed.W_E is damaged"),
    ],
)
def test_sparse_arrays_are_canonical(model: Path, changes: dict[str, list[float]], message: str) -> None:
    rewrite(model, {f"embed.W_E.{part}": np.array(values) for part, values in changes.items()})
    assert message in complaint(model, verify=False)


def test_an_entry_of_a_sparse_array_stands_there_once(model: Path) -> None:
    arrays = load_file(model / "model.safetensors")
    twice = {part: arrays[f"embed.W_E.{part}"] for part in ("data", "indices", "indptr")}
    parts = {"data": np.repeat(twice["data"], 2) / 2, "indices": np.repeat(twice["indices"], 2)}
    parts["indptr"] = twice["indptr"] * 2
    rewrite(model, {f"embed.W_E.{part}": values for part, values in parts.items()})
    assert "some entry stands there twice" in complaint(model, verify=False)


def changed_config(model: Path, **entries: object) -> None:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    (model / "config.json").write_text(json.dumps(config | entries), encoding="utf-8")


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("left_out", ["model.safetensors", "labels.json", "spec.txt"])
def test_a_file_without_a_digest_is_not_loaded(model: Path, left_out: str, verify: bool) -> None:
    digests = json.loads((model / "config.json").read_text(encoding="utf-8"))["sha256"]
    changed_config(model, sha256={name: digest for name, digest in digests.items() if name != left_out})
    assert "must have the digests of all files of the model folder" in complaint(model, verify=verify)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "labels.json", "spec.txt"])
def test_an_enormous_file_is_refused_before_it_is_read(model: Path, name: str) -> None:
    os.truncate(model / name, 1 << 43)  # a hole: it takes no place on the disk
    assert f"DIR/{name} has 8,796,093,022,208 bytes; at most" in complaint(model)


@pytest.mark.parametrize(
    "text", ['{"a":' * 100_000, "[" * 100_000, '{"format_version": ' + "9" * 10_000 + "}", '{"format": "\\ud800"}']
)
@pytest.mark.parametrize("name", ["config.json", "labels.json"])
def test_json_that_no_writer_writes(model: Path, name: str, text: str) -> None:
    (model / name).write_text(text)
    assert f"DIR/{name} can't be read:" in complaint(model, verify=False)


def test_what_is_recorded_about_a_network_is_no_deep_tree(model: Path) -> None:
    changed_config(model, about={"trained": {"recipe": {"rates": [[0.1]]}}})
    assert load(model).about["trained"] == {"recipe": {"rates": [[0.1]]}}
    deep: object = 0
    for _ in range(200):
        deep = [deep]
    changed_config(model, about={"trained": deep})
    assert "nested more than 32 deep" in complaint(model)


def test_float32_is_for_all_arrays_or_none(model: Path) -> None:
    rewrite(model, {"unembed.b_U": np.zeros(2, dtype=np.float32)})
    assert "unembed.b_U holds numbers of type float32, not float64" in complaint(model, verify=False)
    arrays = load_file(model / "model.safetensors")
    rewrite(model, {name: array.astype(np.float32) for name, array in arrays.items() if array.dtype.kind == "f"})
    assert {array.dtype for array in load(model, verify=False).arrays.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("kind", ["int16", "uint32", "uint64"])
def test_indices_of_sparse_arrays_have_the_types_of_scipy(model: Path, kind: str) -> None:
    parts = {
        f"embed.W_E.{part}": load_file(model / "model.safetensors")[f"embed.W_E.{part}"]
        for part in ("indices", "indptr")
    }
    rewrite(model, {name: array.astype(kind) for name, array in parts.items()})
    assert "two of whole numbers in int32 or int64" in complaint(model, verify=False)
    rewrite(model, {name: array.astype(np.int64) for name, array in parts.items()})
    assert load(model, verify=False).arrays["embed.W_E"].nnz


def test_a_spec_that_changed_is_returned_only_where_that_is_accepted(model: Path) -> None:
    (model / "spec.txt").write_text("another spec\n")
    with pytest.raises(FolderError, match=r"spec\.txt is not the spec that the model was built from: .*--accept-spec"):
        spec_path(model)
    assert spec_path(model, accept_changed=True) == model / "spec.txt"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": {"symbols": ["a", "a"]}}, "net.output.symbols must have different names"),
        ({"output": {"symbols": []}}, "must not be empty"),
        ({"output": {"accepting": ["x"]}}, "net.output.accepting must be names in net.output.symbols"),
        ({"inputs": ["<s>", "a", "a"]}, "net.inputs must have different names"),
        ({"min_length": 99}, "net.min_length must be at most net.max_length"),
        ({"architecture": {}}, "this reader knows architecture"),
        ({"loops": 2**20}, "net.loops must be a whole number from 1 to 1,024"),
    ],
)
def test_names_and_lengths_of_no_network(model: Path, changes: dict[str, Any], message: str) -> None:
    net = json.loads((model / "config.json").read_text(encoding="utf-8"))["net"]
    output = net["output"] | changes.pop("output", {})
    changed_config(model, net=net | {"output": output} | changes)
    assert message in complaint(model)
