"""Limits, in one place: the steps of a search, and the time and the memory of a command.

A reader refuses a number before it makes anything of that size (`Within` of `parameters.py`, `Header.number`). A search
whose size no number shows counts its steps (`Meter`): the same input is refused at the same step on every machine. What
remains is bounded by the clock and by the memory of the process (`limited`), which the commands that build, certify,
explain, extract and analyze set; whoever calls the library sets none by default.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType

from vitrify.errors import BudgetSpent, InputError, VitrifyError

REPEAT_SECONDS = 1.0  # after the first alarm: what catches one is stopped by the next
MEMORY_SHARE = 0.75  # of this machine, that a command may take by default
MAX_SEED = (1 << 32) - 1  # what JAX takes; NumPy takes more, but one number should mean the same everywhere
MAX_BITS = 128  # of a number that a message quotes: Python writes none of thousands of digits
MIN_SECONDS = 1e-3  # of a clock: none at all would stop it


def memory_of_machine() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def checked_seed(seed: int) -> int:
    """Return a seed; one that not every generator of random numbers takes is refused."""
    if not 0 <= seed <= MAX_SEED:
        told = str(seed) if seed.bit_length() <= MAX_BITS else f"one of {seed.bit_length():,} bits"
        raise InputError(f"a seed must be a whole number from 0 to {MAX_SEED:,}, not {told}")
    return seed


@dataclass
class Meter:
    """The steps of a search so far, and the largest number allowed; `refusal` returns the error that says so.

    >>> meter = Meter(2, lambda steps: VitrifyError(f"it takes more than {steps} steps"))
    >>> meter.add()
    >>> meter.add(2)
    Traceback (most recent call last):
    ...
    vitrify.errors.VitrifyError: it takes more than 2 steps
    """

    limit: int
    refusal: Callable[[int], VitrifyError]
    steps: int = 0

    def add(self, steps: int = 1) -> None:
        """Count steps; more than allowed are refused."""
        self.steps += steps
        if self.steps > self.limit:
            raise self.refusal(self.limit)


@contextmanager
def limited(doing: str, seconds: float | None = None, memory: float | None = None) -> Iterator[None]:
    """Let a block take this many seconds, and this many bytes beyond what the process holds; more is a `BudgetSpent`.

    A clock interrupts the main thread only: in any other one, memory alone is bounded.
    """
    timed = seconds is not None and threading.current_thread() is threading.main_thread()
    with _clock(doing, seconds or 0.0) if timed else nullcontext(), _memory(memory) if memory else nullcontext():
        try:
            yield
        except MemoryError as error:
            if memory is None:
                raise
            raise BudgetSpent(
                f"{doing} takes more than the {memory / 2**30:.3g} GiB of memory that it may take "
                f"({str(error) or 'no more was given'}): give it more with --memory, or ask for less"
            ) from None


@contextmanager
def _clock(doing: str, seconds: float) -> Iterator[None]:
    """Interrupt a block when its time is over, and again and again until it ends; a clock around it goes on."""

    def alarm(_number: int, _frame: FrameType | None) -> None:
        raise BudgetSpent(
            f"{doing} takes more than the {seconds:g} seconds that it may take: give it more with --seconds, "
            "or ask for less"
        )

    outer, began = signal.getitimer(signal.ITIMER_REAL), time.monotonic()
    if 0 < outer[0] <= seconds:
        yield
        return
    before = signal.signal(signal.SIGALRM, alarm)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, MIN_SECONDS), REPEAT_SECONDS)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer[0]:
            left = outer[0] - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, MIN_SECONDS), outer[1])


@contextmanager
def _memory(memory: float) -> Iterator[None]:
    """Bound the data that this process may hold during a block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([_held() + int(memory), *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _held() -> int:
    """Return the bytes of data that this process holds, as the system counts them for the limit."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - quicker, and always there on Linux
            return int(file.read().split()[5]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
