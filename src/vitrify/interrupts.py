"""Ctrl-C and SIGTERM: a command ends within two seconds, in order, and what trains saves a checkpoint first.

Python hears of a signal only between two of its own steps, and compiling a program may be one long one. So commands
have a thread that the system tells of signals at once (`ending`): where nothing was heard of one after
`GRACE_SECONDS`, it ends the process. Files are whole or absent all the same (`files.py`).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

GRACE_SECONDS = 1.5
SIGNALS = (signal.SIGINT, signal.SIGTERM)

_heard = threading.Event()  # somebody sees to the last signal


class Interrupted(KeyboardInterrupt):
    """What was going on was interrupted; the message says what is kept, and how to resume."""

    def __init__(self, message: str = "", number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


def _raise(number: int, _frame: FrameType | None) -> None:
    _heard.set()
    raise Interrupted(number=number)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[bool]:
    """Handle both signals during a block; only the main thread can, elsewhere False is yielded."""
    if threading.current_thread() is not threading.main_thread():
        yield False
        return
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield True
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def careful() -> Iterator[Callable[[], int]]:
    """Let a block end where it likes: the first signal only makes the yielded function return its number, not 0.

    A second one interrupts as usual.
    """
    first = 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if first:
            _raise(number, frame)
        _heard.set()
        first = number

    with _handled(handler):
        yield lambda: first


def see_to_it() -> None:
    """Say that somebody else sees to signals from now on, as a server does."""
    _heard.set()


@contextmanager
def ending() -> Iterator[None]:
    """Let both signals raise `Interrupted` in a command, or end the process where that is not heard in time."""
    with _handled(_raise) as ours:
        if not ours:
            yield
            return
        _heard.clear()
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reading,), daemon=True).start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            os.close(writing)  # the thread reads the end of the pipe, and ends


def _watch(reading: int) -> None:
    while number := os.read(reading, 1):
        if number[0] in SIGNALS and not _heard.wait(GRACE_SECONDS):
            with suppress(OSError):
                os.write(2, b"interrupted\n")
            os._exit(128 + number[0])
    os.close(reading)
