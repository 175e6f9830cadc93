"""Files and folders that are whole or absent: each is written beside its place and takes it in one step.

What is being written is called `.NAME.partial` and stands beside NAME. Its writer holds a lock on it that the system
ends with the process, however that ends. So a second writer of the same name waits for the first; and what a killed
writer left is found by the next one, unlocked, and is overwritten.

A folder takes the place of another one by an exchange of the two names (`renameat2` of Linux), so that at every moment
one of the two is there, whole. Systems without that need two renames: NAME becomes `.NAME.previous`, and then
`.NAME.partial` becomes NAME. Whoever is killed in between leaves no NAME; `recover`, which readers and the next writer
call, then gives the previous folder its name back.

Nothing is forced to the disk unless a caller asks for it (`force`): a killed process loses nothing by that, a power cut
may lose what was written in the last seconds. Run stores force what cannot be computed again within seconds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from vitrify.errors import FolderError

PACKAGE = Path(__file__).parent
EXCHANGE = 2  # RENAME_EXCHANGE of Linux
HERE = -100  # AT_FDCWD of Linux: paths are relative to the current folder
WRITABLE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW  # a link in the place of a partial file is refused
NO_LOCKS = {errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS}  # of disks on which no file can be locked
MAX_FORCED = 16  # files: beyond, one `sync` of the system is quicker than forcing each of them
LOCK_TRIES, LOCK_PAUSE_SECONDS = 5, 0.005  # somebody who only looks whether a lock is held holds it for a moment

REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the quota of this disk is used up: free some space",
    errno.EFBIG: "a file may not grow that large here: raise the limit ('ulimit -f')",
    errno.EACCES: "no permission: make it writable, or name another place",
    errno.EPERM: "no permission: make it writable, or name another place",
    errno.EROFS: "the disk is read-only: name another place",
    errno.ENOTDIR: "a part of its path is a file: name another place",
    errno.EEXIST: "a file stands in its place: name another place",
}


def bundled(folder: str) -> Path | None:
    """Return a folder that comes with the code: in an installed wheel inside the package, else in the checkout."""
    return next((root / folder for root in (PACKAGE, PACKAGE.parents[1]) if (root / folder).is_dir()), None)


def put(path: Path, content: str | bytes) -> bool:
    """Write a file in one step, unless it says just that already; return whether it was written."""
    data = content.encode() if isinstance(content, str) else content
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, data)
    return True


def keep_only(folder: Path, names: Iterable[str]) -> None:
    """Remove the files of a folder that have other names, and what was left half written."""
    wanted = set(names)
    for path in folder.glob("*"):
        if path.is_file() and path.name not in wanted:
            path.unlink()


def write_text(path: Path | str, text: str) -> None:
    """Write a text file (UTF-8, lines that end in `\\n`) in one step."""
    write_bytes(path, text.encode())


def write_bytes(path: Path | str, data: bytes) -> None:
    """Write a file in one step; a link is followed, and what is no file (a pipe, a terminal) is written to directly."""
    path = Path(path)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path = path.resolve()
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
    with _replacing(path) as (_, file):
        append(file, bytearray(data))


@contextmanager
def whole_file(path: Path, force: Iterable[Path] | None = None) -> Iterator[Path]:
    """Yield a path to write to; what is there when the block ends takes the place of `path` in one step.

    With `force`, not before it and these files are on the disk. After an error, `path` is as it was.
    """
    with _replacing(path, force) as (partial, _):
        yield partial


@contextmanager
def _replacing(path: Path, force: Iterable[Path] | None = None) -> Iterator[tuple[Path, int]]:
    """Yield an empty file, by its path and open, that takes the place of another one in the end."""
    partial = path.with_name(f".{path.name}.partial")
    with _held(partial, lambda: os.open(partial, WRITABLE, 0o666)) as file:
        try:
            os.ftruncate(file, 0)
            yield partial, file
            mode = path.stat().st_mode if path.exists() else os.fstat(file).st_mode
            partial.chmod(mode & 0o777)  # safetensors makes files that only their owner can read
            if force is not None:
                settle([partial, *force])
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def whole_folder(target: Path, kind: str, ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `target` in one step when the block ends.

    An empty folder, or one that is `ours`, is replaced; a file or any other folder is refused. After an error `target`
    is as it was. `kind` is what is written, for messages: "a model folder".
    """
    target = target.resolve()  # a link is followed, and '.' gets a name
    recover(target)
    if target.is_file():
        raise FolderError(f"{target} is a file: name a folder to write to")
    if target.is_dir() and any(target.iterdir()) and not ours(target):
        raise FolderError(f"{target} exists and is not {kind} of vitrify: name another one")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial, previous = (target.with_name(f".{target.name}.{ending}") for ending in ("partial", "previous"))

    def make() -> int:
        while True:  # another writer may remove in between what we find
            with suppress(FileExistsError):
                os.mkdir(partial)  # noqa: PTH102 - `Path.mkdir` asks twice
            with suppress(FileNotFoundError):
                return os.open(partial, os.O_RDONLY | os.O_CLOEXEC)

    with ExitStack() as locks:
        locks.enter_context(_held(partial, make))
        try:
            for path in partial.iterdir():  # what a writer left that was killed
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            yield partial
            with suppress(FileNotFoundError):  # the old folder is ours until its last file is gone
                locks.enter_context(_held(target, lambda: os.open(target, os.O_RDONLY | os.O_CLOEXEC)))
            if target.exists():
                shutil.rmtree(previous, ignore_errors=True)
            _put_in_place(partial, target, previous)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def _put_in_place(partial: Path, target: Path, previous: Path) -> None:
    """Let `partial` take the name of `target`, and remove what had it."""
    if not target.exists():
        partial.rename(target)
    elif _exchange(partial, target):
        shutil.rmtree(partial)
    else:
        target.rename(previous)
        try:
            partial.rename(target)
        except BaseException:
            previous.rename(target)
            raise
        shutil.rmtree(previous)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; return False where the system or the disk can't."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))


def recover(target: Path) -> None:
    """Give a folder its name back whose writer was killed between two renames; wait for a writer that is alive."""
    previous = target.with_name(f".{target.name}.previous")
    if target.exists() or not previous.exists():
        return
    with suppress(FileNotFoundError), _held(previous, lambda: os.open(previous, os.O_RDONLY | os.O_CLOEXEC)):
        if not target.exists():
            previous.rename(target)


@contextmanager
def _held(path: Path, opened: Callable[[], int]) -> Iterator[int]:
    """Hold the lock of what stands under a path; whoever waited for a writer looks again what stands there now."""
    while True:
        file = opened()
        try:
            _lock(file)
            if _stands_at(file, path):
                yield file
                return
        finally:
            os.close(file)


def _stands_at(file: int, path: Path) -> bool:
    """Return whether a path still leads to an open file or folder: another writer may have moved it to its place."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _lock(file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


def remedy(error: Exception) -> str:
    """Return what to do about an error of the system, in words; safetensors only gives its number in a text."""
    number = error.errno if isinstance(error, OSError) else 0
    _, mark, rest = str(error).partition("(os error ")
    return REMEDIES.get(number or (int(rest.partition(")")[0]) if mark else 0), str(error))


def append(file: int, pending: bytearray) -> None:
    """Write all of `pending`, taking away what is written, so that after an error the rest can follow later."""
    while pending:
        del pending[: os.write(file, pending)]


def settle(paths: Iterable[Path]) -> None:
    """Force files and folders to the disk, all at once: a disk that is asked together writes its journal once."""
    chosen = list(paths)
    if len(chosen) > MAX_FORCED:
        os.sync()
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(chosen) or 1) as threads:
        for _ in threads.map(_force, chosen):
            pass


def _force(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class Lock:
    """A file that one handle holds at a time; the system lets go of it when its process ends, however it ends."""

    def __init__(self, path: Path, *, wait: bool) -> None:
        """Take the lock, or raise `BlockingIOError` if somebody holds it and there is no waiting."""
        from socket import gethostname

        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if wait:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            else:
                self._try()
                os.ftruncate(self._file, 0)
                os.write(self._file, f"process {os.getpid()} on {gethostname()}\n".encode())
        except OSError:
            os.close(self._file)
            raise

    def _try(self) -> None:
        for left in reversed(range(LOCK_TRIES)):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if not left:
                    raise
                time.sleep(LOCK_PAUSE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Let go."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @staticmethod
    def holder(path: Path) -> str | None:
        """Return who holds the lock at a path; None if nobody does."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.read(file, 200).decode(errors="replace").strip() or "somebody"
        finally:
            os.close(file)
        return None
