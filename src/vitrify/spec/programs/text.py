r"""Text of `.rasp` files: parser and printer; all problems are reported at once.

    # the word backwards
    alphabet: a b c
    length: 20
    sees: everything

    opposite = width(everywhere) - indices - 1
    return aggregate(select(indices, opposite), tokens)

The header says which symbols there are, how long words get, and whether a position sees `everything` or only what is
to its `left` (itself included); a line `empty: value` gives the answer for the empty word. Below, each line gives an
expression a name, and the last one returns the result, in Python's notation: `tokens`, `indices`, `+ - * // %`,
comparisons, `and or not`, `a if c else b`, `min`, `max`, `abs`, `Fraction(1, 2)`, tables such as `{"a": 1,
"b": 2}[tokens]`, and the functions `aggregate`, `first`, `last`, `mean`, `sum`, `min`, `max`, `width` and `count`.
Selectors are `everywhere`, `before`, `upto`, `after`, `marked(flag)`, `select(keys, queries, "==")` or, with a
relation, `select(keys, queries, {(key, query), …})`; `&`, `|` and `~` (or `and or not`) combine them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import reduce
from inspect import signature
from keyword import iskeyword
from typing import Any, NamedTuple
from unicodedata import normalize

from vitrify.spec.formats.headed import Header
from vitrify.spec.formats.text import Problem, SpecError, refuse_any
from vitrify.spec.programs import expression as language
from vitrify.spec.programs.expression import (
    FETCHES,
    Expr,
    Operand,
    Pairs,
    Selector,
    Table,
    Value,
    apply,
    expression,
    parts,
)
from vitrify.spec.programs.mistakes import meant

NAMES: dict[str, Expr] = {
    name: getattr(language, name) for name in ("tokens", "indices", "everywhere", "before", "upto", "after")
}
FUNCTIONS: dict[str, Callable[..., Expr]] = {
    name: getattr(language, name)
    for name in ("select", "marked", "aggregate", "mean", "width", "first", "last", "count")
}
FUNCTIONS |= {
    "sum": language.sum_of,
    "abs": lambda arg: apply("abs", arg),
    "Fraction": lambda a, b: expression(Fraction(*map(_value, (a, b)))),
}
BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
BINARY |= {ast.BitAnd: "and", ast.BitOr: "or"}
COMPARED = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
HEADER = ("alphabet", "length", "sees")
SEES = {"everything": False, "left": True}
MAX_PROBLEMS = 100  # after which a file is read no further
MAX_INLINE = 40  # characters; a longer expression gets a name


def _extreme(name: str, of_selected: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return the function of a text that compares the selected numbers, or some numbers at a position."""

    def extreme(*args: Any) -> Expr:
        if args and isinstance(args[0], Selector):
            return of_selected(*args)
        if len(args) < 2:
            raise TypeError(f"{name} takes two numbers or more, or a selector and a number")
        return apply(name, *args)

    return extreme


FUNCTIONS |= {"min": _extreme("min", language.min_of), "max": _extreme("max", language.max_of)}


class ProgramText(NamedTuple):
    """The contents of a text: `lines` and `names` are those of the parts of the expression."""

    root: Expr
    alphabet: tuple[str, ...]
    length: int
    causal: bool
    lines: dict[Expr, int]
    names: dict[Expr, str]
    empty: Value


def parse_program(text: str, file: str | None = None) -> ProgramText:
    """The header and the expression that a text describes, or all its problems."""
    problems: list[Problem] = []
    header = Header(enumerate(text.split("\n"), start=1), HEADER, file, problems, optional=("empty",))
    alphabet, length, causal = header.alphabet(), header.number(), header.choice("sees", SEES)
    reader = _Reader(file, problems)
    empty = None
    if "empty" in header.entries:
        try:
            empty = language.exact(_constant(ast.parse(header.entries["empty"][1], mode="eval").body))
        except (*NOT_CONSTANT, SyntaxError, SpecError, MemoryError, RecursionError):
            header.report("empty", ["the answer for the empty word is a constant, such as True, 0 or 'a'"])
    body = dict(header.others)
    root = reader.program(_syntax(body, reader))
    refuse_any(problems)
    assert root is not None
    own = {id(node) for node in NAMES.values()}
    names = {node: name for node, name in reader.named.items() if node.args and id(node) not in own}
    return ProgramText(root, alphabet, length, causal, reader.lines, names, empty)


def _syntax(body: dict[int, str], reader: _Reader) -> ast.Module:
    """Return the syntax tree of numbered lines; lines with a syntax error are reported and left out."""
    last = max(body, default=0)
    while True:
        try:
            return ast.parse("\n".join(body.get(number, "") for number in range(1, last + 1)))
        except SyntaxError as error:
            number = error.lineno if error.lineno in body else max(body)
            assert number is not None
            line = body.pop(number)
            reader.skip(line, f"not an expression: {error.msg}{meant(line)}", number)
            if len(reader.problems) >= MAX_PROBLEMS:  # each costs reading all lines once more
                refuse_any(reader.problems)
        except (MemoryError, RecursionError):  # as Python's parser calls it
            raise SpecError([Problem("brackets or operators are nested too deep", reader.file)]) from None


class _Reader:
    """Turns Python's syntax tree into expressions; anything else is a problem with its line."""

    def __init__(self, file: str | None, problems: list[Problem]) -> None:
        self.file, self.problems = file, problems
        self.names: dict[str, Expr | None] = dict(NAMES)
        self.lines: dict[Expr, int] = {}
        self.named: dict[Expr, str] = {}  # the first name of each expression
        self.defined: dict[str, int] = {}  # the line of each name
        self.returned = False

    def skip(self, line: str, message: str, number: int) -> None:
        """Report a line that can't be read; later uses of the name that it defines are no further problems."""
        self.problems.append(Problem(message, self.file, number))
        name, _, _ = line.partition("=")
        self.names.setdefault(name.strip(), None)
        self.returned |= line.startswith("return")

    def program(self, tree: ast.Module) -> Expr | None:
        """The expression that is returned."""
        result: Expr | None = None
        returned = False
        for statement in tree.body:
            if returned:
                self._problem(statement, "nothing may come after 'return'")
            elif isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets):
                name = ast.unparse(statement.targets[0])
                if len(statement.targets) > 1:
                    self._problem(statement, "a line defines one name")
                if name in NAMES or name in FUNCTIONS:
                    self._problem(statement, f"{name} has a meaning already: choose another name")
                elif name in self.defined:
                    self._problem(
                        statement, f"{name} is defined on line {self.defined[name]} already: choose another name"
                    )
                self.defined.setdefault(name, statement.lineno)
                self.names[name] = value = self.expr(statement.value)
                if value is not None:
                    self.named.setdefault(value, name)
            elif isinstance(statement, ast.Return) and statement.value is not None:
                result, returned = self.expr(statement.value), True
                if isinstance(result, Selector):
                    self._problem(statement, "a selector has no values: return an aggregate, a mean or a width of it")
            else:
                self._problem(statement, f"a line is 'name = expression' or 'return expression'{meant(statement)}")
        if not returned and not self.returned:
            self.problems.append(Problem("the last line must be 'return expression'", self.file))
        return result

    def _problem(self, node: ast.AST, message: str) -> None:
        self.problems.append(Problem(message, self.file, getattr(node, "lineno", None)))

    def expr(self, node: ast.expr) -> Expr | None:
        """The expression that a piece of syntax writes; None where it, or a part of it, is wrong."""
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | str | None):
            return expression(node.value)
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                hint = meant(node, (*FUNCTIONS, *self.names))
                self._problem(node, f"{node.id} is not defined above this line; a program can't refer to itself{hint}")
            return self.names.get(node.id)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
            return self._noted(node, self._table(node.value, node.slice))
        if isinstance(node, ast.Call) and len(node.args) == 3 and isinstance(node.args[2], ast.Set):
            return self._noted(node, self._related(node, node.args[2]))
        shape = self._operation(node)
        if shape is None:
            self._problem(node, f"{ast.unparse(node)!r} is not part of the language{meant(node, FUNCTIONS)}")
            return None
        name, inner = shape
        args = [self.expr(part) for part in inner]
        if any(arg is None for arg in args):
            return None
        return self._noted(node, self._made(node, name, [arg for arg in args if arg is not None]))

    def _noted(self, node: ast.expr, made: Expr | None) -> Expr | None:
        """Record the first line of an expression and of its arguments."""
        if made is not None:
            for part in (made, *made.args):
                self.lines.setdefault(part, node.lineno)
        return made

    def _operation(self, node: ast.expr) -> tuple[str, list[ast.expr]] | None:
        if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
            return BINARY[type(node.op)], [node.left, node.right]
        if isinstance(node, ast.BoolOp):
            return ("and" if isinstance(node.op, ast.And) else "or"), node.values
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
            return ("neg" if isinstance(node.op, ast.USub) else "not"), [node.operand]
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            return COMPARED[type(node.ops[0])], [node.left, node.comparators[0]]
        if isinstance(node, ast.IfExp):
            return "if", [node.body, node.test, node.orelse]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            with suppress(TypeError):  # a name that the function's arguments do not have
                named = {str(keyword.arg): keyword.value for keyword in node.keywords}
                ordered = signature(FUNCTIONS[node.func.id]).bind(*node.args, **named).args if named else node.args
                return node.func.id, list(ordered)
        return None

    def _made(self, node: ast.expr, name: str, args: list[Expr]) -> Expr | None:
        chosen = [isinstance(arg, Selector) for arg in args]
        if name in FUNCTIONS:
            return self._called(node, name, args)
        if any(chosen):
            if not all(chosen) or name not in ("and", "or", "not"):
                self._problem(node, f"{name!r} can't take a selector here: & | ~ combine selectors with selectors")
                return None
            return Selector(name, tuple(args)) if name == "not" else reduce(lambda a, b: Selector(name, (a, b)), args)
        return apply(name, *args)

    def _called(self, node: ast.expr, name: str, args: list[Expr]) -> Expr | None:
        given: list[Operand] = list(args)
        if name == "select" and len(args) == 3:
            given[2] = args[2].data
            if given[2] not in language.COMPARISONS:
                self._problem(node, f"select compares with one of {' '.join(language.COMPARISONS)}, not {given[2]!r}")
                return None
        wants = name in SELECTED or (name in ("min", "max") and bool(args) and isinstance(args[0], Selector))
        if name in FETCHES and wants and len(args) == 3:
            try:
                given[2] = _value(args[2])
            except TypeError:
                self._problem(node, f"the default of {name} must be a constant")
                return None
        wrong = [arg for place, arg in enumerate(args) if isinstance(arg, Selector) != (wants and place == 0)]
        try:
            if wrong:
                raise TypeError(f"{'only its first' if wants else 'no'} argument is a selector")
            return FUNCTIONS[name](*given)
        except (TypeError, ZeroDivisionError) as error:
            self._problem(node, f"{name} is not called like that: {error}")
            return None

    def _related(self, node: ast.Call, pairs: ast.Set) -> Expr | None:
        """Return a selector by a relation, given as pairs."""
        keys, queries = (self.expr(part) for part in node.args[:2])
        try:
            held = {_constant(pair) for pair in pairs.elts}
        except NOT_CONSTANT:
            held = set()
        if not held or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in held):
            self._problem(pairs, "a relation is written as pairs of constants: {(key, query), …}")
            return None
        if not isinstance(node.func, ast.Name) or node.func.id != "select":
            self._problem(node, "only select takes a relation")
            return None
        if keys is None or queries is None:
            return None
        return language.select(keys, queries, Pairs(sorted(held, key=repr)))

    def _table(self, table: ast.Dict, index: ast.expr) -> Expr | None:
        args = [self.expr(part) for part in (index.elts if isinstance(index, ast.Tuple) else [index])]
        try:
            keys = [_constant(key) for key in table.keys if key is not None]
            values = [_constant(value) for value in table.values]
            hash((*keys, *values))
        except NOT_CONSTANT:
            self._problem(table, "a table is written with constants only")
            return None
        if any(arg is None for arg in args):
            return None
        rows: dict[tuple[Value, ...], Value] = {
            key if isinstance(key, tuple) else (key,): value for key, value in zip(keys, values, strict=True)
        }
        if len(rows) < len(keys) or any(len(row) != len(args) for row in rows):
            self._problem(table, f"a key of this table has {len(args)} value{'s' * (len(args) > 1)}, and occurs once")
            return None
        return apply(Table(rows), *args)


SELECTED = {*FETCHES, "sum", "width"} - {"min", "max"}  # functions whose first argument is a selector
NOT_CONSTANT = (ValueError, TypeError, ZeroDivisionError)


def _constant(node: ast.expr) -> Any:
    """Return a constant, a fraction or a tuple of them from its syntax; raise NOT_CONSTANT for anything else."""
    if isinstance(node, ast.Tuple):
        return tuple(map(_constant, node.elts))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Fraction":
        return Fraction(*map(_constant, node.args))
    return ast.literal_eval(node)


def _value(expr: Expr) -> Any:
    """Return the value of a constant or of its negative."""
    if expr.op == "apply" and expr.data == "neg":
        return -_value(expr.args[0])
    if expr.op != "const":
        raise TypeError("an argument is not a constant")
    return expr.data


def program_text(
    root: Expr, alphabet: tuple[str, ...], length: int, causal: bool, names: Mapping[Expr, str], empty: Value
) -> str:
    """Return the file of a program; parts that are used twice, or are long, get a name, and others keep theirs."""
    uses = Counter(id(arg) for node in parts(root) for arg in node.args)
    texts: dict[int, str] = {}
    lines = [f"alphabet: {' '.join(alphabet)}", f"length: {length}", f"sees: {'left' if causal else 'everything'}"]
    lines += ([] if empty is None else [f"empty: {empty!r}"]) + [""]
    known = {id(node): name for name, node in NAMES.items()}
    taken, start = {*names.values()}, len(lines) - 1
    for node in parts(root):
        text = known.get(id(node)) or _written(node, [texts[id(arg)] for arg in node.args])
        shared = uses[id(node)] > 1 or len(text) > MAX_INLINE
        if id(node) not in known and node.args and (node in names or (shared and node is not root)):
            name = names.get(node) or unused(f"x{len(lines) - start}", taken)
            lines.append(f"{name} = {text}")
            text = name
        texts[id(node)] = text
    return "\n".join([*lines, f"return {texts[id(root)]}", ""])


def unused(name: str, taken: set[str]) -> str:
    """Return a name, with underscores behind it if others have it, and add it to them."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def identifier(text: str, taken: set[str]) -> str:
    """Return a name that a program may use for a part, as near to a text as possible, and add it to those taken."""
    text = normalize("NFKC", text)  # as Python reads names
    name = text if text.isidentifier() else re.sub(r"\W+", "_", text).strip("_") or "part"
    if not name.isidentifier() or iskeyword(name) or name in (*NAMES, *FUNCTIONS):
        name = f"_{name}"
    return unused(name, taken)


def _written(node: Expr, args: list[str]) -> str:
    if node.op == "const":
        return repr(node.data)
    if isinstance(node, Selector) and node.op in ("and", "or", "not"):
        return f"~({args[0]})" if node.op == "not" else f"({args[0]}) {'&' if node.op == 'and' else '|'} ({args[1]})"
    if node.op == "select":
        if isinstance(node.data, str):
            return f"select({args[0]}, {args[1]}, {node.data!r})"
        pairs = ", ".join(repr(pair) for pair in node.data.pairs)
        return f"select({args[0]}, {args[1]}, {{{pairs}}})" if pairs else "~everywhere"  # {} would be a table
    if node.op == "width":
        return f"width({args[0]})"
    if node.op in FETCHES:
        return f"{node.op}({args[0]}, {args[1]}, {node.data!r})"
    if isinstance(node.data, Table):
        rows = ", ".join(f"{key if len(key) > 1 else key[0]!r}: {value!r}" for key, value in node.data.rows.items())
        return f"{{{rows}}}[{', '.join(args)}]"
    if node.data in ("and", "or"):
        return f" {node.data} ".join(f"({arg})" for arg in args)
    if node.data in ("not", "neg"):
        return f"{'not ' if node.data == 'not' else '-'}({args[0]})"
    if node.data == "if":
        return f"({args[0]}) if ({args[1]}) else ({args[2]})"
    if node.data in ("min", "max", "abs"):
        return f"{node.data}({', '.join(args)})"
    return f"({args[0]}) {node.data} ({args[1]})"
