"""The contract of a claim, as lists of problems: its docstring, its declaration, and the evidence that it gives.

A claim of the catalogue is held to it by contract tests, and one in a file of a user whenever the file is read or run.
Docstring and declaration are judged as text: nothing of the file is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import Parameter, signature
from pathlib import Path
from typing import get_args

from vitrify.claims import LEARNED
from vitrify.claims.catalogue import SECTIONS, STRENGTH, Claim, Outcome, Standing
from vitrify.errors import ClaimError, Problem
from vitrify.registry import Headline

MIN_WORDS = 4  # of a section: fewer state nothing
MAX_QUOTED = 60  # characters of a text in a message
CERTIFIED = tuple(str(method.value) for method in STRENGTH)
ID = re.compile(r"[RBLG]\d+")
PLANNED = "Claim.planned"
PLAN_FIELDS = ("plan", "judge", "nulls", "draw", "measure")
PARAMETERS = {  # of the two ways to make a claim, without and with a plan
    "Claim": {name: each for name, each in signature(Claim).parameters.items() if name not in PLAN_FIELDS},
    PLANNED: dict(signature(Claim.planned).parameters),
}
LITERAL = {  # fields that are read without running the file, and what each must be
    "id": "a text such as 'R14': R (can represent), B (lower bounds), L (learns) or G (generalizes), and a number",
    "standing": f"one of {', '.join(map(repr, get_args(Standing)))}",
    "certified": f"one of {', '.join(map(repr, CERTIFIED))}",
    "budget_seconds": "a number of seconds above 0",
    "uncertified": "a text: the reason why there is no exact network",
}


def docstring_problems(page: Headline, planned: bool) -> list[str]:
    """Return what a claim's docstring lacks; a plan takes the place of two sections (`planned`)."""
    if not page.doc.strip():
        return ['the file must begin with a docstring, r"""…""": its first line is the claim, and sections follow']
    problems = []
    if not page.doc.splitlines()[0].endswith("."):
        problems.append(f"the first line of the docstring must be a sentence with a full stop: {_short(page.doc)}")
    (_, before), *sections = page.sections
    words = [word for word, _ in sections]
    if before:
        problems.append(f"text before the first section belongs into a section: {_short(before)}")
    optional = {"Why", "Checked", "Saboteur"} if planned else {"Why"}
    missing = [word for word in SECTIONS if word not in words and word not in optional]
    if missing:
        problems.append(f"the docstring lacks {', '.join(f'{word}:' for word in missing)} (each begins a line)")
    unknown = [word for word in words if word not in SECTIONS]
    if unknown:
        known = ", ".join(SECTIONS)
        problems += [f"a line begins with {word}:, which is no section; there are {known}" for word in unknown]
    known_words = [word for word in words if word in SECTIONS]
    problems += [f"there are two sections {word}:" for word in SECTIONS if known_words.count(word) > 1]
    order = [word for word in SECTIONS if word in known_words]
    if list(dict.fromkeys(known_words)) != order:
        problems.append(f"the sections must stand in the order {', '.join(order)}")
    short = [word for word, text in sections if word in SECTIONS and len(text.split()) < MIN_WORDS]
    return problems + [f"{word}: says too little (at least {MIN_WORDS} words)" for word in short]


def declaration_problems(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield what is wrong about the statement `CLAIM = Claim(…)` of a file, with the line."""
    found = [node for node in tree.body if "CLAIM" in _assigned(node)]
    if len(found) != 1:
        lines = ", ".join(str(node.lineno) for node in found)
        what = f"is assigned several times (lines {lines})" if found else "is missing"
        yield (found[-1].lineno if found else 1), f"CLAIM {what}: the file must have one statement CLAIM = Claim(…)"
        return
    (node,) = found
    call = node.value if isinstance(node, ast.Assign) else None
    if not isinstance(call, ast.Call):
        yield node.lineno, "CLAIM must be assigned by a plain statement CLAIM = Claim(…)"
        return
    maker = PLANNED if is_planned(tree) else "Claim"
    positional = [name for name, each in PARAMETERS[maker].items() if each.kind is not Parameter.KEYWORD_ONLY]
    arguments = dict(zip(positional, call.args, strict=False))
    arguments |= {str(keyword.arg): keyword.value for keyword in call.keywords}
    if any(isinstance(each, ast.Starred) for each in call.args) or "None" in arguments:
        yield node.lineno, "the arguments of Claim must be written out: they are read without running the file"
        return
    if len(call.args) > len(positional):
        yield node.lineno, f"{maker} takes at most {len(positional)} arguments without a name: {', '.join(positional)}"
    yield from ((node.lineno, text) for text in _argument_problems(maker, arguments))


def _assigned(node: ast.stmt) -> set[str]:
    """Return the names that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def is_planned(tree: ast.Module) -> bool:
    """Return whether the claim of a file is made by `Claim.planned`."""
    calls = [node.value for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    return any(ast.unparse(call.func) == PLANNED for call in calls)


def _argument_problems(maker: str, arguments: dict[str, ast.expr]) -> Iterator[str]:
    parameters = PARAMETERS[maker]
    unknown = [name for name in arguments if name not in parameters]
    if unknown:
        yield f"{maker} has no {', '.join(unknown)}; it has {', '.join(parameters)}"
    required = [name for name, each in parameters.items() if each.default is Parameter.empty]
    missing = [name for name in (*required, *functions_of(maker == PLANNED)) if name not in arguments]
    if missing:
        yield f"{maker} lacks {', '.join(dict.fromkeys(missing))}"
    values = {}
    for name in LITERAL.keys() & arguments.keys():
        node = arguments[name]
        values[name] = node.value if isinstance(node, ast.Constant) else None
        if not _allowed(name, values[name]):
            yield f"{name} must be {LITERAL[name]}, written out in CLAIM = Claim(…)"
    if maker != PLANNED and ("certified" in arguments) == ("uncertified" in arguments):
        yield (
            "Claim needs either certified='…' (the weakest method that certifies its exact networks) or "
            "uncertified='…' (the reason why it has none)"
        )
    if (maker == PLANNED) != (str(values.get("id"))[:1] in LEARNED) and "id" in values:
        yield "ids of claims about training or generalization, which have a plan, begin with L or G, and no others"


def functions_of(planned: bool) -> tuple[str, ...]:
    """Return the fields that a claim needs beside the required ones, with or without a plan."""
    return ("judge", "nulls") if planned else ("check", "sabotage")


def _allowed(name: str, value: object) -> bool:
    """Return whether a literal field may have a value."""
    match name:
        case "id":
            return isinstance(value, str) and ID.fullmatch(value) is not None
        case "standing":
            return value in get_args(Standing)
        case "certified":
            return value in CERTIFIED
        case "budget_seconds":
            return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return isinstance(value, str) and bool(value.strip())


def outcome_problems(claim: Claim, outcome: Outcome) -> list[str]:
    """Return why an outcome that holds rests on too little: a case, a domain and a measured criterion everywhere.

    Also the method that its networks were certified by, where the claim declares another one.
    """
    if outcome.verdict != "holds":
        return []
    problems = []
    for path, leaf in outcome.evidence.leaves():
        name = ": ".join(path)
        lacks = [] if leaf.cases > 0 else ["a case (cases is 0)"]
        lacks += [] if leaf.domains else ["a domain (what was run, and how many)"]
        judged = leaf.criteria or any(each.relation for each in leaf.quantities)
        lacks += [] if judged else ["a quantity with a declared value, or a criterion"]
        problems += [f"the evidence on {name!r} lacks {', '.join(lacks)}"] if lacks else []
    weakest = max(outcome.methods, key=STRENGTH.index, default=None)
    if claim.certified != weakest and claim.plan is None:
        was = "no network is certified" if weakest is None else f"the weakest certificate is {weakest.value!r}"
        needed = "uncertified='the reason'" if weakest is None else f"certified={weakest.value!r}"
        problems.append(f"{was}: declare {needed} in CLAIM = Claim(…)")
    return problems


def hold_to_contract(page: Headline, claim: Claim, outcome: Outcome) -> None:
    """Refuse an outcome that holds and rests on too little, with all reasons."""
    refuse(page.path, outcome_problems(claim, outcome))


def refuse(path: Path | None, problems: list[str]) -> None:
    """Raise all problems of a file at once, if there are any."""
    if problems:
        raise ClaimError([Problem(text, str(path)) for text in problems])


def _short(text: str) -> str:
    first = text.splitlines()[0]
    return repr(first if len(first) <= MAX_QUOTED else f"{first[:MAX_QUOTED]}…")
