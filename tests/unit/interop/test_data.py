"""Rows on disk are the sampler's rows with the oracle's answers, the same bytes every time, in bounded pieces."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pyarrow.parquet as parquet
import pytest

from cases import each
from command_line import vitrify
from vitrify.errors import InputError
from vitrify.interop import data
from vitrify.interop.data import in_splits, write_data
from vitrify.sandboxes.catalogue import Sandbox, entry, examples, make
from vitrify.sandboxes.markov import Markov

CHAIN = make("markov", p=0.2, q=0.3, length=5)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 16 rows, files of 32."""
    monkeypatch.setattr(data, "BATCH_ROWS", 16)
    monkeypatch.setattr(data, "SHARD_BYTES", 1)


def read(folder: Path, split: str) -> dict[str, Any]:
    """The columns of a split, all its files one after another, as nested lists."""
    found: dict[str, list[Any]] = {}
    for path in sorted(folder.rglob(f"{split}-*.parquet")):
        for name, column in parquet.read_table(path).to_pydict().items():
            found.setdefault(name, []).extend(column)
    return found


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "name",
    ["ngram", *(pytest.param(name, marks=pytest.mark.slow) for name in ("scenes", "sparse_averaging", "hierarchy"))],
)
def test_what_is_read_again_is_what_was_drawn(name: str, tmp_path: Path) -> None:
    sandbox = make(name, entry(name).small)
    written = write_data(sandbox, tmp_path / "rows", {"test": 40}, seed=3)
    assert [path.name for path in written.files] == [f"test-0000{n}-of-00003.parquet" for n in range(3)]
    assert [parquet.read_metadata(path).num_rows for path in written.files] == [16, 16, 8]
    found = read(tmp_path / "rows", "test")
    drawn = jax.jit(lambda: examples(sandbox, 3, "test", 0, 40))()
    best = np.exp(jax.jit(jax.vmap(sandbox.optimal))(drawn))
    assert found["index"] == list(range(40))
    assert np.array_equal(found["tokens"], drawn.tokens)
    assert np.array_equal(found["targets"], drawn.targets)
    assert np.array_equal(found["weight"], drawn.weight)
    asked = np.asarray(drawn.weight) > 0
    assert np.allclose(np.asarray(found["optimal"])[asked], best[asked], atol=1e-6)
    assert {key for key in found if key.startswith("latent_")} == {
        f"latent_{key.replace(' ', '_')}" for key in drawn.latent
    }
    for key, value in drawn.latent.items():
        assert np.allclose(found[f"latent_{key.replace(' ', '_')}"], value, atol=1e-6)
    assert ("soft" in found) == (drawn.soft is not None)
    if drawn.soft is not None:
        assert np.allclose(found["soft"], drawn.soft, atol=1e-6)


@pytest.mark.usefixtures("small_pieces")
def test_the_same_rows_are_the_same_bytes_and_splits_differ(tmp_path: Path) -> None:
    one = write_data(CHAIN, tmp_path / "one", {"train": 40, "test": 40})
    two = write_data(CHAIN, tmp_path / "two", {"train": 40, "test": 40})
    assert [path.read_bytes() for path in one.files] == [path.read_bytes() for path in two.files]
    few = write_data(CHAIN, tmp_path / "few", {"train": 20})
    train, test = read(one.folder, "train"), read(one.folder, "test")
    assert train["tokens"] != test["tokens"]
    assert {name: column[:20] for name, column in train.items()} == read(few.folder, "train")


def test_a_folder_for_datasets_has_a_card_that_names_its_files(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    folder = tmp_path / "rows"
    write_data(CHAIN, folder, {"train": 30, "test": 5}, layout="datasets", progress=lambda *at: steps.append(at))
    assert steps == [(30, 35), (35, 35)]
    front, body = (folder / "README.md").read_text().removeprefix("---\n").split("\n---\n")
    assert "  - split: train\n    path: data/train-*.parquet\n  - split: test\n    path: data/test-*.parquet" in front
    about = json.loads(body.split("```json\n")[1].split("```")[0])
    assert about == json.loads(parquet.read_schema(folder / "data/test-00000-of-00001.parquet").metadata[b"vitrify"])
    assert about["parameters"] == {"p": 0.2, "q": 0.3, "length": 5}
    assert about["entropy rate"] == pytest.approx(0.5446, abs=1e-4)


@pytest.mark.slow
def test_hugging_face_datasets_loads_the_folder_and_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    written = write_data(CHAIN, tmp_path / "rows", {"train": 30, "test": 5}, layout="datasets")
    whole = datasets.load_dataset(str(tmp_path / "rows"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(found) for split, found in whole.items()} == {"train": 30, "test": 5}
    assert whole["train"]["tokens"][:] == read(written.folder, "train")["tokens"]
    assert whole["test"].with_format("numpy")[0]["optimal"].shape == (5, 2)
    files = {"train": str(tmp_path / "rows" / "data" / "train-*.parquet")}
    alone = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))
    assert alone["train"]["optimal"][:] == whole["train"]["optimal"][:]


def test_another_folder_is_left_alone_and_our_own_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("my notes")
    with pytest.raises(InputError, match="holds something else"):
        write_data(CHAIN, tmp_path / "mine", {"train": 1})
    write_data(CHAIN, tmp_path / "rows", {"test": 2})
    assert len(write_data(CHAIN, tmp_path / "rows", {"train": 3}).files) == 1
    with pytest.raises(InputError, match="is a file"):
        write_data(CHAIN, tmp_path / "rows" / "README.md", {"train": 1})


def test_what_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_data(CHAIN, tmp_path / "rows", {"train": 3}, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_would_fill_the_disk_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = write_data(CHAIN, tmp_path / "rows", {"train": 1024}).bytes
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100 * size))
    with pytest.raises(InputError, match=r"204,800 rows of markov take about .* are free in .*: write fewer rows"):
        write_data(CHAIN, tmp_path / "more", {"train": 204_800})
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    with pytest.raises(InputError, match=r"a seed must be a whole number from 0 to 4,294,967,295, not -1"):
        write_data(CHAIN, tmp_path / "more", {"train": 1}, seed=-1)
    with pytest.raises(InputError, match=r"must be 1 to 4,294,967,296, not 4,294,967,297"):
        write_data(CHAIN, tmp_path / "more", {"train": (1 << 32) + 1})


@dataclass(frozen=True)
class Unknown(Markov):
    """A chain about which nobody knows what is best."""

    def optimal(self, row: Any) -> Any:
        raise NotImplementedError


def test_a_sandbox_without_an_oracle_is_refused(tmp_path: Path) -> None:
    sandbox: Sandbox = Unknown()
    with pytest.raises(InputError, match="knows no optimal distribution"):
        write_data(sandbox, tmp_path / "rows", {"train": 1})


@each("words", [["tran"], ["train", "train=3"], ["test=many"], ["test=-1"], ["test="]])
def test_splits_are_given_once_and_by_name(words: list[str]) -> None:
    with pytest.raises(InputError, match=r"splits are train, test, probe"):
        in_splits(words, 3)


def test_the_command_writes_and_refuses(tmp_path: Path) -> None:
    rows = str(tmp_path / "rows")
    words = ["--rows", "20", "--split", "train", "--split", "test=4", "-o", rows, "--json"]
    done = vitrify("data", "markov", "length=5", *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == {"train": 20, "test": 4}
    assert len(read(tmp_path / "rows", "test")["tokens"]) == 4
    for words in (["--rows", "1001"], ["--split", "test"], ["-o", str(tmp_path)], ["-o", rows, "--split", "all"]):
        wrong = vitrify("data", "markov", *words)
        assert wrong.returncode == 2, words
