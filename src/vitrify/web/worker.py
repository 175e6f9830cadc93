"""A worker process: reads questions, writes answers, one line of JSON each; memory is bounded by the system."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vitrify.errors import VitrifyError

PAUSE = 0.1  # seconds between two words of progress


def main(memory: int, patience: int) -> None:
    """Answer questions until there are no more."""
    os.nice(patience)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the app, which then ends its workers
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1 << 16)
    os.dup2(2, 1)  # whatever prints must not be taken for an answer

    def say(line: dict[str, Any]) -> None:
        out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")
        out.flush()

    from vitrify.web.tasks import TASKS

    for line in sys.stdin:
        question = json.loads(line)
        task = TASKS[question.pop("do")]
        path, given = question.get("path", ""), question.get("given", "")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = _answer(task, question, _seldom(say))
        if "error" in answer:  # a file has the name that its owner gave it
            answer["error"] = answer["error"].replace(path or given, given)
        else:
            answer["warnings"] = [str(warning.message).replace(path or given, given) for warning in caught]
        say(answer | {"peak": _peak()})


def _peak() -> int:
    """The most bytes that this process has held; the system's own count begins with what its parent held."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _seldom(say: Callable[[dict[str, Any]], None]) -> Callable[..., None]:
    """Progress, told a few times a second at most; what is done at all is always told."""
    last: list[Any] = [0.0, None]

    def progress(*parts: Any) -> None:
        now = time.monotonic()
        if now - last[0] > PAUSE or parts[0] != last[1]:
            last[:] = [now, parts[0]]
            say({"progress": parts})

    return progress


def _answer(task: Any, question: dict[str, Any], progress: Any) -> dict[str, Any]:
    try:
        return dict(task(**question, progress=progress))
    except VitrifyError as error:
        return {"error": str(error), "status": 422}
    except (OSError, MemoryError) as error:  # as the command line says it
        return {"error": f"the system refused: {error or type(error).__name__}", "status": 413}
    except Exception:  # a fault of ours: it must not take the worker away from others
        traceback.print_exc()
        return {"error": "vitrify failed here, which is a fault of its own: the terminal of the app shows where"} | {
            "status": 500
        }


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
