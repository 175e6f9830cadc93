"""The command line: verbs, no logic. Exit 0 = all holds, 1 = something fails, 2 = misuse."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import TextIO

from vitrify.errors import SpecWarning, VitrifyError
from vitrify.interrupts import ending


def main() -> None:
    """Run the command line; a user's mistake gives one message and exit code 2, never a traceback."""
    from vitrify.cli.app import app

    held: dict[str, None] = {}  # warnings, each once, until it is known that no error makes them pointless
    warnings.showwarning = partial(_hold_warning, held)
    warnings.simplefilter("always", SpecWarning)
    warnings.filterwarnings("ignore", ".* encountered in ", RuntimeWarning)  # infinite numbers are judged or printed
    try:
        _run(app)
    except SystemExit as ended:
        if ended.code != 2:
            sys.stderr.write("".join(held))
        raise


def _run(app: Callable[[], None]) -> None:
    try:
        with ending():
            app()
    except VitrifyError as error:
        _stop(str(error))
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt as stop:
        from vitrify.cli.options import end

        sys.exit(end(stop))
    except (OSError, MemoryError) as error:
        _stop(f"the system refused: {str(error) or type(error).__name__}")


def _stop(message: str) -> None:
    from vitrify.cli.render import printable

    lines = (line if line.startswith("  ") else f"error: {line}" for line in printable(message).splitlines())
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.exit(2)


def _hold_warning(
    held: dict[str, None],
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> None:
    place = "" if issubclass(category, SpecWarning) else f" ({category.__name__} at {filename}:{lineno})"
    held[f"warning: {message}{place}\n"] = None
