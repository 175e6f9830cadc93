"""Files and folders are whole or absent: after errors, after `kill -9` at any moment, and with several writers."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from vitrify import files
from vitrify.errors import FolderError
from vitrify.files import recover, remedy, whole_file, whole_folder, write_bytes, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_in_one_step_and_an_error_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    write_text(path, "one\nlinë\n")
    assert path.read_bytes() == "one\nlinë\n".encode()
    path.chmod(0o640)
    (tmp_path / ".note.txt.partial").write_text("left by a writer that was killed, and longer than what follows")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with suppress(ZeroDivisionError), whole_file(path) as partial:
        partial.write_bytes(b"three")
        raise ZeroDivisionError
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["note.txt"]


def test_a_link_is_followed_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    write_text(os.devnull, "nothing")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
def test_a_folder_is_replaced_and_an_error_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(files, "_exchange", lambda _one, _other: False)
    target = tmp_path / "folder"
    for number in range(3):
        (tmp_path / ".folder.partial").mkdir()
        (tmp_path / ".folder.partial" / "left").mkdir()
        with whole_folder(target, "a folder", lambda found: (found / "mine").exists()) as partial:
            assert names(partial) == []
            (partial / "mine").write_text(str(number))
            assert (target / "mine").read_text() == str(number - 1) if number else not target.exists()
        assert (target / "mine").read_text() == str(number)
        assert names(tmp_path) == ["folder"]
    with suppress(KeyboardInterrupt), whole_folder(target, "a folder", lambda _found: True) as partial:
        (partial / "mine").write_text("half")
        raise KeyboardInterrupt
    assert (target / "mine").read_text() == "2"
    with (
        pytest.raises(FolderError, match="exists and is not a folder of vitrify"),
        whole_folder(target, "a folder", lambda _found: False),
    ):
        pass
    assert names(tmp_path) == ["folder"]


def test_a_folder_that_lost_its_name_gets_it_back(tmp_path: Path) -> None:
    (tmp_path / ".folder.previous").mkdir()
    (tmp_path / ".folder.previous" / "mine").write_text("whole")
    (tmp_path / ".folder.partial").mkdir()
    recover(tmp_path / "folder")
    assert (tmp_path / "folder" / "mine").read_text() == "whole"
    with whole_folder(tmp_path / "folder", "a folder", lambda _found: True):
        pass
    assert names(tmp_path) == ["folder"]


def test_what_the_system_refuses_is_said_in_words() -> None:
    assert remedy(OSError(errno.ENOSPC, "No space left on device")) == "the disk is full: free some space"
    assert remedy(ValueError("I/O error: No space left on device (os error 28)")) == "the disk is full: free some space"
    assert remedy(ValueError("something else")) == "something else"


# One process imports once and forks writers: each saves one of two nets over the other one, and is killed at a random
# moment of that. After each kill the folder must load, verified, as one of the two.
KILLED = """
import os, random, signal, sys, time
from pathlib import Path

from nets import copycat, mixed, random_net
from vitrify import files
from vitrify.net.folder import load, save

folder, kills, exchange = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True"
if not exchange:
    files._exchange = lambda one, other: False
nets = [copycat(), random_net(mixed())]
digests = [net.digest for net in nets]
rng = random.Random(kills)
save(nets[1], folder)
seconds = 0.0
for kill in range(-2, kills):  # the first two are left to end: so long takes a save
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"x")
        save(nets[kill % 2], folder)
        os.write(writing, b"x")
        signal.pause()
    os.read(reading, 1)
    began = time.perf_counter()
    if kill < 0:
        os.read(reading, 1)
        seconds = max(seconds, time.perf_counter() - began)
    else:
        time.sleep(rng.uniform(0, 1.5 * seconds))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading), os.close(writing)
    left = sorted(path.name for path in folder.parent.iterdir() if path != folder)
    missing = not folder.exists()
    found = digests.index(load(folder).digest)  # checks the hash of every file
    if kill >= 0:
        print("new" if found == kill % 2 else "old", "missing" if missing else "there", *left)
    save(nets[kill % 2], folder)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
"""


@pytest.mark.long
@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
@pytest.mark.parametrize("kills", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_a_folder_is_whole_whenever_its_writer_is_killed(tmp_path: Path, kills: int, exchange: bool) -> None:
    (tmp_path / "place").mkdir()
    words = [sys.executable, "-c", KILLED, str(tmp_path / "place" / "model"), str(kills), str(exchange)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = Counter(done.stdout.splitlines())
    assert sum(lines.values()) == kills
    states = [line.split()[:2] for line in lines]
    if exchange:  # never a moment without the folder
        assert {there for _, there in states} == {"there"}
    assert {state for state, _ in states} == {"old", "new"}, lines
    assert any(".model.partial" in line for line in lines), lines  # some were killed on the way


WRITER = """
import sys
from pathlib import Path
from vitrify.files import whole_folder, write_text

place, name = Path(sys.argv[1]), sys.argv[2]
for number in range(60):
    text = name * 1000 + str(number)
    write_text(place / "file", text)
    with whole_folder(place / "folder", "a folder", lambda found: True) as partial:
        for part in ("one", "two"):
            (partial / part).write_text(text)
"""


@pytest.mark.long
def test_several_writers_of_one_place_wait_for_each_other(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert names(tmp_path) == ["file", "folder"]
    one, two = ((tmp_path / "folder" / part).read_text() for part in ("one", "two"))
    assert one == two
    for text in (one, (tmp_path / "file").read_text()):
        assert text == text[0] * 1000 + text[1000:]
        assert text[1000:] == "59"


def test_a_link_in_the_place_of_a_partial_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / ".note.txt.partial").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic link"):
        write_text(tmp_path / "note.txt", "new")
    assert (tmp_path / "other").read_text() == "mine"
    assert not (tmp_path / "note.txt").exists()
