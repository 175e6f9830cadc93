"""Tasks for worker processes of tests; a module of its own, because workers import it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vitrify.errors import InputError
from vitrify.report.atlas import ClaimCheck


@dataclass(frozen=True)
class Count:
    """Send the numbers below `last`, and then what `then` says."""

    last: int
    then: str = ""

    def run(self, send: Callable[[Any], None]) -> None:
        for number in range(self.last):
            send(number)
        if self.then == "mistake":
            raise InputError("there is no such thing")
        if self.then == "fault":
            raise ZeroDivisionError("oh")
        if self.then == "abort":
            print("the last words", flush=True)  # noqa: T201
            os.abort()
        if self.then == "sleep":
            time.sleep(600)
        if self.then == "fill memory":
            send(len(bytearray(1 << 33)))


class Aborting(ClaimCheck):
    """A check whose process ends."""

    def check(self) -> None:
        os.abort()
