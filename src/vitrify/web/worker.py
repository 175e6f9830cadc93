"""Questions of the web app, answered by a worker process: progress, then the answer as a JSON text."""

from __future__ import annotations

import inspect
import resource
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vitrify import encoding
from vitrify.encoding import JsonObject
from vitrify.errors import VitrifyError

PROGRESS_SECONDS = 0.1  # between two reports of progress
MAX_ANSWER_CHARACTERS = 64 << 20


@dataclass(frozen=True)
class WebQuestion:
    """A call of one of the functions in `tasks.py`, by name, with its arguments, and some that not all of them take."""

    do: str
    arguments: JsonObject

    def run(self, send: Callable[[object], None]) -> None:
        """Send reports of progress as tuples, and the answer as a text in the end."""
        path, digest = self.arguments.get("path", ""), self.arguments.get("file_name", "")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = self._answer(_seldom(send))
        if "error" in answer:  # a file has the name that its owner gave it
            answer["error"] = answer["error"].replace(path or digest, digest)
        else:
            answer["warnings"] = [str(warning.message).replace(path or digest, digest) for warning in caught]
        text = encoding.line(answer | {"peak": _peak()})
        if len(text) > MAX_ANSWER_CHARACTERS:
            text = encoding.line({"error": "the answer is too large to be shown: ask for less", "status": 413})
        send(text)

    def _answer(self, progress: Callable[..., None]) -> JsonObject:
        from vitrify.web.tasks import TASKS

        try:
            task = TASKS[self.do]
            arguments, taken = {**self.arguments, "progress": progress}, inspect.signature(task).parameters
            return dict(task(**{name: value for name, value in arguments.items() if name in taken}))
        except VitrifyError as error:
            return {"error": str(error), "status": 422}
        except (OSError, MemoryError) as error:  # as the command line says it
            return {"error": f"the system refused: {error or type(error).__name__}", "status": 413}
        except Exception:  # a fault of ours: it must not take the worker away from others
            traceback.print_exc()
            fault = "vitrify failed here, which is a fault of its own: the terminal of the app shows where"
            return {"error": fault, "status": 500}


def _peak() -> int:
    """Return the most bytes that this process has held; the system's own count begins with what its parent held."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _seldom(send: Callable[[object], None]) -> Callable[..., None]:
    """Return a function that sends progress a few times a second at most; a new kind of work is always told."""
    last, doing = 0.0, ""

    def progress(*parts: object) -> None:
        nonlocal last, doing
        now = time.monotonic()
        if now - last > PROGRESS_SECONDS or parts[0] != doing:
            last, doing = now, str(parts[0])
            send(parts)

    return progress
