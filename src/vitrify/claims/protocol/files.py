"""A claim in a file of a user: read as text, held to the contract, executed without a trace, its errors located.

    page = read_claim(Path("mine.py"))     the docstring and the literal fields; all problems at once; nothing is run
    claim = guarded(page)                  the claim, each of whose functions runs as a script of that folder would

While a function of the file runs, its folder is the first on `sys.path`, so that it can import what stands beside it.
Afterwards `sys.path` and `sys.modules` are as before, but for packages of elsewhere: NumPy can't be imported twice.
"""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from vitrify.certification.evidence import Evidence
from vitrify.claims.catalogue import Claim, ClaimPage, Subject
from vitrify.claims.protocol.contract import declaration_problems, docstring_problems, functions_of, is_planned, refuse
from vitrify.claims.protocol.planning import Plan
from vitrify.errors import ClaimError, InputError, Problem, VitrifyError
from vitrify.registry import Headline, headline

RETURNS: dict[str, tuple[type, str]] = {  # of the functions of a claim; a claim about training has the last two
    "check": (Evidence, "Evidence"),
    "sabotage": (Subject, "a Subject"),
    "judge": (Evidence, "Evidence"),
    "measure": (Mapping, "arrays by name"),
}
SUBJECTS = ("subjects", "large")


@dataclass(frozen=True)
class ClaimFile(ClaimPage):
    """The page of a claim in a file, with the text of the file as it was read."""

    text: str = ""

    @cached_property
    def code(self) -> FileModule:
        """The file as a module, executed when it is first needed."""
        assert self.path is not None
        return FileModule(self.path, self.text)


def read_claim(path: Path) -> ClaimFile:
    """Return the page of the claim in a file; refuse a file that breaks the contract, with all that is wrong."""
    if not path.is_file():
        raise InputError(f"there is no file {path}: 'vitrify new claim NAME' writes one to start from")
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ClaimError([Problem(f"this is not Python: {error.msg}", str(path), error.lineno)]) from None
    except (ValueError, RecursionError, MemoryError) as error:  # bytes that are no text, or nested too deep
        raise ClaimError([Problem(f"this is not Python: {error}", str(path))]) from None
    about = headline(path.stem, text, "CLAIM")
    declared = [Problem(problem, str(path), line) for line, problem in declaration_problems(tree)]
    written = [Problem(problem, str(path)) for problem in docstring_problems(about, is_planned(tree))]
    if written or declared:
        raise ClaimError([*written, *declared])
    return ClaimFile(about.name, about.doc, about.fields, path, text)


class FileModule:
    """A Python file that belongs to no package, as a module that is in `sys.modules` only while its code runs."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self.folder = path.resolve().parent
        self._imports: dict[str, ModuleType] = {}  # from its folder

    @cached_property
    def module(self) -> ModuleType:
        """The module, executed once, from the text that was read."""
        name = self.path.stem if self.path.stem not in sys.modules else f"claim_{self.path.stem}"
        spec = spec_from_file_location(name, self.path)
        assert spec is not None
        module = self._imports[name] = module_from_spec(spec)
        with self.running("importing the file"):
            exec(compile(self.text, str(self.path), "exec", dont_inherit=True), vars(module))
        return module

    @contextmanager
    def running(self, what: str) -> Iterator[None]:
        """Run code of the file: imports find its folder, and any error becomes one message with its line."""
        with self._importable():
            try:
                yield
            except (Exception, SystemExit) as error:
                raise ClaimError([self._located(what, error)]) from error

    @contextmanager
    def _importable(self) -> Iterator[None]:
        folder, before = str(self.folder), set(sys.modules)
        on_path = any(Path(entry or ".").resolve() == self.folder for entry in sys.path)
        own = {name: module for name, module in self._imports.items() if name not in before}
        sys.modules.update(own)
        if on_path:  # what it imports is imported as usual
            try:
                yield
            finally:
                _forget(own)
            return
        listed = set(sys.path_importer_cache)
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            if folder in sys.path:
                sys.path.remove(folder)
            for place in set(sys.path_importer_cache) - listed:
                if Path(place).is_relative_to(folder):  # its list of files may be old when the file runs again
                    del sys.path_importer_cache[place]
            new = {name: module for name, module in sys.modules.items() if name not in before and self._holds(name)}
            self._imports |= new
            _forget({**own, **new})

    def _holds(self, name: str) -> bool:
        """Return whether a module, or the package that it belongs to, was found in the folder of the file."""
        top = sys.modules.get(name.partition(".")[0])
        places = [*getattr(top, "__path__", ())] or [getattr(top, "__file__", None)]
        return any(place and Path(place).resolve().parent == self.folder for place in places)

    def _located(self, what: str, error: BaseException) -> Problem:
        """Return an error as a problem, at the last line of the folder's code that it went through."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).resolve().parent == self.folder]
        file, line = (own[-1].filename, own[-1].lineno) if own else (str(self.path), None)
        if isinstance(error, SyntaxError) and error.filename:  # of a file that this one imports
            file, line = error.filename, error.lineno
        if isinstance(error, VitrifyError):
            return Problem(f"{what}: {error}", file, line)
        if isinstance(error, ModuleNotFoundError):
            advice = "install it, or put it beside the file"
            return Problem(f"{what}: {error}: {advice}", file, line)
        said = f": {error}" if str(error) else ""
        return Problem(f"{what} raised {type(error).__name__}{said}", file, line)


def _forget(modules: Iterable[str]) -> None:
    for name in modules:
        sys.modules.pop(name, None)


def file_module(page: Headline) -> FileModule:
    """Return the module of the claim in a file."""
    assert isinstance(page, ClaimFile)
    return page.code


def guarded(page: Headline) -> Claim:
    """Return the claim in a file, whose functions run beside their folder and must return what the contract says."""
    code = file_module(page)
    claim = getattr(code.module, "CLAIM", None)
    if not isinstance(claim, Claim):
        raise ClaimError([Problem(f"CLAIM must be a Claim, and is a {type(claim).__name__}", str(code.path))])
    refuse(code.path, value_problems(page, claim))
    guard = GuardedFunctions(code, claim)
    functions: dict[str, Any] = {name: guard.subjects(name) for name in SUBJECTS if getattr(claim, name)}
    functions |= {name: guard.function(name) for name in (*RETURNS, "draw", "figure") if getattr(claim, name)}
    return replace(claim, **functions, nulls=guard.nulls())


def value_problems(page: Headline, claim: Claim) -> list[str]:
    """Return what is wrong about the values of a claim, whose declaration is in order."""
    functions = {name: getattr(claim, name) for name in (*SUBJECTS, *RETURNS, "draw")}
    nulls = claim.nulls if isinstance(claim.nulls, Mapping) else {}
    functions |= {f"the null of {statement!r}": null for statement, null in nulls.items()}
    problems = [
        f"{name} must be a function, and is of type {type(function).__name__}"
        for name, function in functions.items()
        if function is not None and not callable(function)
    ]
    absent = [name for name in functions_of(claim.plan is not None) if getattr(claim, name) is None]
    problems += [f"{name} must be given, and is None" for name in absent]
    for name, kind in (("nulls", Mapping), ("plan", Plan | None)):
        if not isinstance(getattr(claim, name), kind):
            problems.append(f"{name} must be a {getattr(kind, '__name__', 'Plan')}")
    read = {name: getattr(claim, name) for name in page.fields}
    changed = [name for name, value in read.items() if value != page.fields[name]]
    return problems + [f"{name} is not what CLAIM = Claim(…) says: leave it as it is" for name in changed]


class GuardedFunctions:
    """The functions of a claim in a file, each with what runs around it."""

    def __init__(self, code: FileModule, claim: Claim) -> None:
        self.code, self.claim = code, claim
        self.broken = False  # whether the saboteur ran last: the check is then of what it made

    def function(self, name: str) -> Callable[..., Any]:
        """Return a function of the claim that runs beside its folder and returns what it must."""
        function = getattr(self.claim, name)

        def run(*arguments: Any) -> Any:
            about = getattr(arguments[0], "name", "") if arguments else ""
            made, self.broken = self.broken, name == "sabotage"
            on = f" on {'what the saboteur made of ' if made else ''}{about!r}" if about else ""
            with self.code.running(f"{name}{on}"):
                result = function(*arguments)
            if name in RETURNS:
                self._must_be(result, *RETURNS[name], f"{name}{on}")
            if name == "judge":
                self._judges_the_plan(result, on)
            return result

        return run

    def subjects(self, name: str) -> Callable[[], Iterator[Subject]]:
        """Return a function that yields the claim's subjects, each made when it is needed."""
        function = getattr(self.claim, name)

        def each() -> Iterator[Subject]:
            with self.code.running(name):
                subjects = iter(function())
            while True:
                with self.code.running(name):
                    subject = next(subjects, None)
                if subject is None:
                    return
                self._must_be(subject, Subject, "a Subject each time", name)
                yield subject

        return each

    def nulls(self) -> dict[str, Callable[..., Any]]:
        """Return the null hypotheses; statements that share one share what is returned for it, too."""
        made: dict[int, Callable[..., Any]] = {}
        for statement, null in self.claim.nulls.items():
            made.setdefault(id(null), self._null(f"the null of {statement!r}", null))
        return {statement: made[id(null)] for statement, null in self.claim.nulls.items()}

    def _null(self, what: str, null: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            with self.code.running(what):
                result = null(*arguments)
            self._must_be(result, *RETURNS["measure"], what)
            return result

        return run

    def _must_be(self, value: object, kind: type, name: str, what: str) -> None:
        if not isinstance(value, kind):
            text = f"{what} must give {name}, and gave a value of type {type(value).__name__}"
            raise ClaimError([Problem(text, str(self.code.path))])

    def _judges_the_plan(self, evidence: Evidence, on: str) -> None:
        planned = set(self.claim.plan.statements) if self.claim.plan else set()
        judged = set(evidence.statements)
        if not judged or judged - planned:
            named = ", ".join(sorted(judged - planned)) or "none"
            known = ", ".join(sorted(planned))
            text = f"judge{on} must give criteria with statement=…, of the plan's {known}, and names {named}"
            raise ClaimError([Problem(text, str(self.code.path))])
