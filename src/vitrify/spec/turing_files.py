"""Turing machines as TOML text, with every problem on its line, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitrify.errors import Problem
from vitrify.spec.files import kind_of, refuse_any, refuse_suffix
from vitrify.spec.toml_files import TomlFile, read_toml
from vitrify.spec.turing import Rule, TuringMachine

TEXTS, LISTS, NUMBERS = ("start", "blank"), ("halt", "alphabet", "marks", "accept"), ("length", "steps")
NEEDED = ("start", "halt", "blank", "alphabet", "length", "states")
ORDER = ("start", "halt", "accept", "blank", "alphabet", "marks", "length", "steps")
BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_machine(path: Path) -> TuringMachine:
    """The machine of a `.tm.toml` file."""
    if not path.name.endswith(TuringMachine.suffix):
        raise refuse_suffix(path, TuringMachine.suffix)
    file = read_toml(path)
    refuse_any(_shape_problems(file))
    data = file.data
    fields: dict[str, Any] = {key: data[key] for key in (*TEXTS, *NUMBERS) if key in data}
    fields |= {key: tuple(data[key]) for key in LISTS if key in data}
    rules = [Rule(state, read, *text.split()) for state, row in data["states"].items() for read, text in row.items()]
    return TuringMachine(rules=tuple(rules), source=file, **fields)


def _shape_problems(file: TomlFile) -> Iterator[Problem]:
    """What keeps a file from being read as a machine at all."""
    data, known = file.data, (*TEXTS, *LISTS, *NUMBERS, "states")
    yield from (file.problem((), f"{key} is missing") for key in NEEDED if key not in data)
    yield from (
        file.problem((key,), f"{key!r} is no key of a machine: {', '.join(known)}") for key in data if key not in known
    )
    for key, value in data.items():
        if key in TEXTS and not isinstance(value, str):
            yield file.problem((key,), f"{key} must be a text, is {kind_of(value)}")
        if key in LISTS and not (isinstance(value, list) and all(isinstance(part, str) for part in value)):
            yield file.problem((key,), f"{key} must be a list of texts, is {kind_of(value)}")
        if key in NUMBERS and type(value) is not int:
            yield file.problem((key,), f"{key} must be a whole number, is {kind_of(value)}")
    states = data.get("states", {})
    if not isinstance(states, dict) or ("states" in data and not states):
        yield file.problem(("states",), "the rules of each state stand in a table [states.NAME]")
        return
    for state, row in states.items():
        if not isinstance(row, dict):
            yield file.problem(
                ("states", state), f"the rules of each state stand in a table [states.NAME], not {kind_of(row)}"
            )
            continue
        for read, text in row.items():
            if not isinstance(text, str) or len(text.split()) != 3:
                found = kind_of(text)
                yield file.problem(("states", state, read), f'a rule is a text "write move next", not {found}')


def machine_text(machine: TuringMachine) -> str:
    """The `.tm.toml` text of a machine."""
    said = [key for key in ORDER if key in NEEDED or getattr(machine, key) not in ((), None)]
    lines = [f"{key} = {_text(getattr(machine, key))}" for key in said]
    for state in machine.working:
        lines += ["", f"[states.{_key(state)}]"]
        lines += [f"{_key(r.read)} = {_text(f'{r.write} {r.move} {r.to}')}" for r in machine.rules if r.state == state]
    return "".join(f"{line}\n" for line in lines)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
