r"""Read programs of Tracr from their own Python source: they become programs of ours, with the same values.

A file is run as Python, with `language.py` in the place of `tracr.rasp.rasp`, so that Tracr need not be installed; run
only files that you trust. Its functions are tabulated over the values that their arguments can have: where one divides
by zero, the value is None, as in Tracr. Numbers are exact: a float becomes the simplest fraction within `FLOAT_ERROR`.
Values that are neither numbers nor strings, such as tuples, are fine inside a program, not as its result.

`Aggregate` becomes `aggregate` where the selected positions agree on all words that are tried, and else `mean`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from traceback import extract_tb
from types import ModuleType, SimpleNamespace
from typing import Any

from vitrify.errors import InputError, Problem, SpecError
from vitrify.interop.tracr import language
from vitrify.spec.formats.headed import MAX_WORD_LENGTH
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.programs.expression import (
    Expr,
    Selector,
    Table,
    Value,
    aggregate,
    apply,
    choose,
    everywhere,
    exact,
    expression,
    indices,
    mean,
    select,
    tokens,
    width,
)
from vitrify.spec.programs.program import BEGIN, Program
from vitrify.spec.programs.values import MAX_ROWS, Values, symbols_of

FLOAT_ERROR = 1e-9  # distance of a float from the fraction that it becomes, relative to numbers above 1
MAX_DENOMINATOR = 10**6
SIGNS = ("+", "-", "*")  # of numbers: sums are free in our networks


def from_tracr(
    source: str | Path | language.SOp,
    symbols: Iterable[object] | None = None,
    length: int | None = None,
    *,
    causal: bool | None = None,
) -> Program:
    """Return the program that a Python file of Tracr defines, for words of some symbols up to a length.

    `source` is `FILE.py:NAME`, the name of an SOp or of a function without arguments that returns one. Symbols, length
    and mask may be missing where the file calls `compile_rasp_to_model`, and NAME, too, if it does that once.
    """
    name, calls = "program", list[Compiled]()
    if isinstance(source, language.SOp):
        sop = source
    else:
        sop, name, calls = _read(str(source))
    call = next((call for call in calls if call.sop is sop), calls[0] if len(calls) == 1 else None)
    if call is not None:
        symbols, length = symbols or call.symbols, length or call.length
        causal = call.causal if causal is None else causal
    if symbols is None or length is None:
        raise InputError(f"{source}: a program of Tracr has neither symbols nor a length: give both")
    symbols = tuple(symbols)
    odd = [symbol for symbol in symbols if not isinstance(symbol, bool | int | float | str)]
    if odd or not symbols or not 1 <= length <= MAX_WORD_LENGTH:
        given = f"the symbol {odd[0]!r}" if odd else f"{len(symbols)} symbols and the length {length}"
        raise InputError(
            f"{source}: symbols must be numbers or strings, one at least, and the length from 1 to "
            f"{MAX_WORD_LENGTH:,}; given: {given}"
        )
    return _converted(sop, symbols, length, bool(causal), name)


def _read(source: str) -> tuple[language.SOp, str, list[Compiled]]:
    """Run a file; return the program that is named, its name, and the calls of the compiler."""
    file, colon, name = source.rpartition(":") if not source.endswith(".py") else (source, "", "")
    path = Path(file)
    if not file.endswith(".py") or not path.is_file():
        raise InputError(f"a program of Tracr is given as FILE.py:NAME, and {file or source} is no such file")
    calls: list[Compiled] = []
    with installed(path, calls):
        names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
        _attempt(path, lambda: exec(compile(path.read_bytes(), str(path), "exec"), names))
        sop = names.get(name) if colon else (calls[0].sop if len(calls) == 1 else None)
        if callable(sop) and not isinstance(sop, language.RASPExpr):
            sop = _attempt(path, sop)
    if not isinstance(sop, language.SOp):
        found = [key for key, value in names.items() if isinstance(value, language.SOp) and not key.startswith("_")]
        what = f"{name} is {'not there' if sop is None else f'a {type(sop).__name__}'}" if colon else "NAME is missing"
        raise InputError(
            f"{source}: {what}; name an SOp ({', '.join(found) or 'there is none'}), "
            "or a function without arguments that returns one"
        )
    return sop, name or path.stem, calls


def _attempt(path: Path, action: Callable[[], Any]) -> Any:
    """Return what some code of a file returns; its errors become one problem with the line."""
    try:
        return action()
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        raise SpecError([Problem(f"{type(error).__name__}: {error}", str(path), line)]) from None


@contextmanager
def installed(path: Path, calls: list[Compiled]) -> Iterator[None]:
    """Put our modules in the place of Tracr's; its library is found beside a file, or where Tracr is installed."""

    def compile_rasp_to_model(
        program: language.SOp, vocab: Iterable[object], max_seq_len: int, causal: bool = False, **options: object
    ) -> Compiled:
        call = Compiled(program, tuple(vocab), max_seq_len, causal, options.get("compiler_bos", BEGIN))
        calls.append(call)
        return call

    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "tracr"}
    modules = {name: ModuleType(name) for name in ("tracr", "tracr.rasp", "tracr.compiler", "tracr.compiler.compiling")}
    modules["tracr.rasp.rasp"] = language
    modules["tracr.compiler.compiling"].__dict__["compile_rasp_to_model"] = compile_rasp_to_model
    roots = [str(path.absolute().parent), *sys.path]
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, module)
        if name != "tracr.rasp.rasp":
            module.__path__ = [str(Path(root, *name.split("."))) for root in roots]
    for name in before:
        del sys.modules[name]
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "tracr"]:
            del sys.modules[name]
        sys.modules.update(before)


@dataclass(frozen=True, eq=False)
class Compiled:
    """What `compile_rasp_to_model` returns: a network of ours, which is built when it is first applied."""

    sop: language.SOp
    symbols: tuple[object, ...]
    length: int
    causal: bool
    bos: object

    @cached_property
    def program(self) -> Program:
        """The program of ours."""
        return from_tracr(self.sop, self.symbols, self.length, causal=self.causal)

    @cached_property
    def net(self) -> Any:
        """The network."""
        from vitrify.constructions.catalogue import build

        return build(self.program)

    def apply(self, word: Sequence[object]) -> SimpleNamespace:
        """Return what the network answers, as `decoded`: the beginning, then the value at every position."""
        from vitrify.net.answers import run
        from vitrify.net.inference import encode, logits

        if not word or word[0] != self.bos:
            raise InputError(f"a word begins with {self.bos!r}, and {list(word)!r} does not")
        symbols = [str(symbol) for symbol in word[1:]]
        if self.net.architecture.output.kind == "values":
            (rows,) = logits(self.net, [encode(self.net.architecture, symbols)])
            return SimpleNamespace(decoded=[self.bos, *rows[1:, 0].tolist()])
        domain = self.program.values[self.program.root]
        values = dict(zip(symbols_of(domain), domain, strict=True))
        return SimpleNamespace(decoded=[self.bos, *(values[symbol] for symbol in run(self.net, symbols).output)])


def _converted(sop: language.SOp, symbols: tuple[object, ...], length: int, causal: bool, name: str) -> Program:
    """Return a program; aggregates whose positions disagree on some word become means, one after the other."""
    means = set[int]()
    while True:
        draft = _Converter(symbols, length, causal, means)
        root = draft.part(sop).expr
        refuse_any(draft.problems)
        if root is None:
            raise SpecError(["the values of a program are numbers, strings and truth values: its result has others"])
        program = Program(root, draft.alphabet, length, causal, name, names=draft.values.names)
        wrong = {key for node, key in draft.aggregates if node in program.disagreeing}
        if not wrong - means:
            refuse_any(program.ambiguities)
            return program
        means |= wrong


@dataclass(frozen=True, eq=False)
class TracrPart:
    """Values at a position: a function of the values of some expressions; `expr` where it is one itself."""

    args: tuple[Expr, ...]
    function: Callable[..., Any]
    expr: Expr | None


def plain(value: Any) -> Value:
    """Return a value of a program of ours; raise a TypeError for others."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise SpecError([f"a program has the value {value!r}: its numbers must be finite"])
        near = Fraction(value).limit_denominator(MAX_DENOMINATOR)
        return exact(near if abs(near - Fraction(value)) <= FLOAT_ERROR * max(1.0, abs(value)) else Fraction(value))
    if hasattr(value, "item"):  # a number of NumPy
        return plain(value.item())
    if value is None or isinstance(value, bool | int | str | Fraction):
        return exact(value)
    raise TypeError(f"{value!r} is no number and no string")


def _always(selector: Selector) -> bool:
    """Return whether a selector selects at least the position itself."""
    reflexive = selector.op == "select" and selector.args[0] is selector.args[1] and selector.data in ("==", "<=", ">=")
    return selector is everywhere or reflexive


class _Converter:
    """Converts expressions from the inside out; what is shared is converted once."""

    def __init__(self, symbols: tuple[object, ...], length: int, causal: bool, means: set[int]) -> None:
        named = {str(symbol): symbol for symbol in symbols}
        order = sorted(named, key=lambda text: (isinstance(named[text], str), named[text]))
        if len(named) < len(symbols):
            raise InputError("two symbols are written in the same way: give them different names")
        self.alphabet, self.means = tuple(order), means
        self.problems: list[Problem | str] = []
        self.values = Values(tokens, self.alphabet, length, causal)
        self.aggregates: list[tuple[Expr, int]] = []
        self._parts: dict[int, TracrPart] = {}
        self._kept: list[object] = []  # so that identities stay unique
        self._codes: dict[str, Any] = {}
        table: dict[tuple[Value, ...], Value] = {(text,): plain(symbol) for text, symbol in named.items()}
        self._tokens = tokens if all(text == value for (text,), value in table.items()) else apply(Table(table), tokens)

    def part(self, sop: language.SOp) -> TracrPart:
        """Return the values of an expression."""
        if id(sop) not in self._parts:
            self._kept.append(sop)
            part = self._part(sop)
            if part.expr is not None and sop.name and part.expr.args:
                self.values.names.setdefault(part.expr, sop.name)
            self._parts[id(sop)] = part
        return self._parts[id(sop)]

    def _part(self, sop: language.SOp) -> TracrPart:
        if isinstance(sop, language.SequenceMap):
            return self._mapped(sop)
        if isinstance(sop, language.SelectorWidth):
            return self._own(width(self.selector(sop.selector)))
        if isinstance(sop, language.Aggregate):
            return self._aggregated(sop)
        simple = {
            language.TokensType: self._tokens,
            language.IndicesType: indices,
            language.LengthType: width(everywhere),
        }
        if isinstance(sop, language.Full):
            return self._own(expression(plain(sop.fill)))
        return self._own(simple[type(sop)])

    def _own(self, expr: Expr) -> TracrPart:
        expr = self.values.include(expr)
        self.problems += [problem.message for problem in self.values.problems]
        refuse_any(dict.fromkeys(self.problems))
        return TracrPart((expr,), lambda value: value, expr)

    def _mapped(self, sop: language.SequenceMap) -> TracrPart:
        inner = [self.part(each) for each in sop.inner]
        exprs = [part.expr for part in inner if part.expr is not None]
        if len(exprs) == len(inner) == 2:
            numbers, flags = (all(map(test, exprs)) for test in (self.values.numeric, self.values.boolean))
            if (sop.sign in SIGNS and numbers) or (sop.sign in ("and", "or") and flags):
                return self._own(apply(str(sop.sign), *exprs))
            if isinstance(sop, language.LinearSequenceMap) and numbers:
                first, second = (plain(factor) for factor in sop.sign)  # type: ignore[attr-defined]  # a pair
                return self._own(exprs[0] * first + exprs[1] * second)
        args = tuple({id(arg): arg for part in inner for arg in part.args}.values())

        def function(*values: Value) -> Any:
            known = {id(arg): value for arg, value in zip(args, values, strict=True)}
            row = [part.function(*(known[id(arg)] for arg in part.args)) for part in inner]
            try:
                return None if any(value is None for value in row) else sop.f(*row)
            except ArithmeticError:
                return None

        return self._tabulated(args, function, sop.name or "map")

    def _tabulated(self, args: tuple[Expr, ...], function: Callable[..., Any], name: str) -> TracrPart:
        """Return a function of some expressions, as an expression if its values are plain."""
        count = math.prod(len(self.values[arg]) for arg in args)
        if count > MAX_ROWS:
            raise SpecError([f"{name} would be a table of {count:,} rows, more than {MAX_ROWS:,}"])
        rows: dict[tuple[Value, ...], Any] = {}
        for row in product(*(self.values[arg] for arg in args)):
            try:
                rows[row] = function(*row)
            except Exception as error:
                shown = ", ".join(map(repr, row))
                raise SpecError([f"{name} fails on {shown}: {type(error).__name__}: {error}"]) from None
        try:
            table = Table({row: plain(value) for row, value in rows.items()}, name)
        except TypeError:
            return TracrPart(args, lambda *row: rows[row], None)
        return self._own(apply(table, *args))

    def _written(self, part: TracrPart) -> tuple[Expr, Callable[[Value], Any]]:
        """Return the values as an expression, with codes for those that are not plain, and the way back."""
        if part.expr is not None:
            return part.expr, lambda value: value

        def code(*row: Value) -> str:
            value: Hashable = part.function(*row)
            self._codes[repr(value)] = value
            return repr(value)

        coded = self._tabulated(part.args, code, "code").expr
        assert coded is not None
        return coded, lambda value: self._codes[str(value)]

    def selector(self, chosen: language.Selector) -> Selector:
        """Return a selector."""
        if not isinstance(chosen, language.Select):
            inner = [self.selector(part) for part in chosen.parts]
            return (
                ~inner[0]
                if chosen.sign == "not"
                else inner[0] & inner[1]
                if chosen.sign == "and"
                else inner[0] | inner[1]
            )
        relation = chosen.predicate
        if relation in (language.Comparison.TRUE, language.Comparison.FALSE):
            return everywhere if relation is language.Comparison.TRUE else ~everywhere
        (keys, key), (queries, query) = (self._written(self.part(side)) for side in (chosen.keys, chosen.queries))
        if isinstance(relation, language.Comparison) and self.values.numeric(keys) and self.values.numeric(queries):
            return select(keys, queries, relation.value)
        if relation is language.Comparison.EQ and None not in (*self.values[keys], *self.values[queries]):
            return select(keys, queries)

        def holds(k: Value, q: Value) -> bool:
            try:
                return bool(relation(key(k), query(q)))
            except ArithmeticError:
                return False
            except (TypeError, ValueError):
                if k is None or q is None:  # Tracr selects nothing there
                    return False
                raise

        holds.__name__ = chosen.name or "predicate"
        return select(keys, queries, holds)

    def _aggregated(self, sop: language.Aggregate) -> TracrPart:
        selector, (inner, decode) = self.selector(sop.selector), self._written(self.part(sop.sop))
        default = plain(sop.default)
        if sop.selector.name:
            self.values.names.setdefault(self.values.include(selector), sop.selector.name)
        if id(sop) not in self.means or not self.values.numeric(inner):
            part = self._own(aggregate(selector, inner, default))
            assert part.expr is not None
            self.aggregates.append((part.expr, id(sop)))
        elif isinstance(default, int | Fraction) or _always(selector):
            part = self._own(mean(selector, inner, default if isinstance(default, int | Fraction) else 0))
        else:
            part = self._own(choose(width(selector) > 0, mean(selector, inner, 0), default))
        return (
            part
            if self.part(sop.sop).expr is not None
            else TracrPart(part.args, lambda value: value if value is None else decode(value), None)
        )
