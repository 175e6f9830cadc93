"""What was probably meant where a program is not written in the language: one sentence for each usual mistake."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from difflib import get_close_matches

STATEMENTS: dict[type[ast.AST], str] = {
    ast.AugAssign: "an expression does not change: give the new value a name of its own",
    ast.FunctionDef: "there are no functions: repeat the lines, or write the program in Python",
    ast.For: "there are no loops: a selector reads all positions at once",
    ast.While: "there are no loops: a selector reads all positions at once",
    ast.If: "a choice is an expression: x if condition else y",
    ast.Import: "all functions of the language are there without an import",
    ast.ImportFrom: "all functions of the language are there without an import",
    ast.Assign: "each line defines one name",
    ast.AnnAssign: "there are no types: leave out the annotation",
    ast.Expr: "give the expression a name, or return it",
}
EXPRESSIONS: dict[type[ast.AST], str] = {
    ast.Lambda: 'a function of values is a table, such as {"a": 1, "b": 2}[tokens]',
    ast.ListComp: "a selector reads all positions at once: count(flag), or aggregate(select(…), …)",
    ast.GeneratorExp: "a selector reads all positions at once: count(flag), or aggregate(select(…), …)",
    ast.Dict: 'a table is applied to something: {"a": 1, "b": 2}[tokens]',
    ast.Set: "a relation is the third argument of select",
    ast.List: "a value is one number, symbol or truth value",
    ast.Tuple: "a value is one number, symbol or truth value",
    ast.Subscript: "the value at another position is aggregate(select(indices, position), values)",
    ast.JoinedStr: "a table maps values to strings",
}
OPERATORS: dict[type[ast.AST], str] = {
    ast.Div: "a constant is Fraction(1, 2), whole numbers are divided by //, a share is mean(selector, flag)",
    ast.Pow: "write x * x, or a table",
    ast.MatMult: "write *",
    ast.BitXor: "write x != y",
    ast.LShift: "multiply by a constant",
    ast.RShift: "divide by a constant with //",
}
COMPARISONS: dict[type[ast.AST], str] = {
    ast.In: 'write x == "a" or x == "b"',
    ast.NotIn: 'write x != "a" and x != "b"',
    ast.Is: "write ==",
    ast.IsNot: "write !=",
}
NAMES = {
    "len": "the length of the word is width(everywhere)",
    "length": "the length of the word is width(everywhere)",
    "true": "write True",
    "false": "write False",
    "none": "write None",
    "null": "write None",
    "range": "the positions are indices",
    "index": "the positions are indices",
    "position": "the positions are indices",
    "token": "the symbols are tokens",
    "average": "write mean(selector, values)",
    "avg": "write mean(selector, values)",
    "any": "write width(selector) > 0",
    "all": "write width(~selector) == 0",
    "float": "write Fraction(1, 2)",
}
SIGNS = {
    r"&&": "write and",
    r"\|\|": "write or",
    r"!(?!=)": "write not",
    r"\?": "a choice is x if condition else y",
    r"<>": "write !=",
    r";": "a line ends without a sign",
}


def meant(what: ast.AST | str, known: Iterable[str] = ()) -> str:
    """Return "; " and a sentence that says what to write instead of a line or a part of it, or nothing."""
    if isinstance(what, str):
        line = re.sub(r"\"[^\"]*\"|'[^']*'", "", what)
        hint = next((hint for sign, hint in SIGNS.items() if re.search(sign, line)), None)
    else:
        hint = _of_node(what, known)
    return "" if hint is None else f"; {hint}"


def _of_node(node: ast.AST, known: Iterable[str]) -> str | None:
    if isinstance(node, ast.Name):
        near = get_close_matches(node.id, [*known], n=1, cutoff=0.75)
        return NAMES.get(node.id.lower()) or (f"{near[0]} is" if near else None)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            return f"functions are written without a dot: {node.func.attr}(…)"
        hint = _of_node(node.func, known)
        return (
            hint.replace(" is", "(…) is") if hint and isinstance(node.func, ast.Name) and hint.endswith(" is") else hint
        )
    if isinstance(node, ast.Attribute):
        return f"names are written without a dot: {node.attr}"
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return f"numbers are exact: Fraction{node.value.as_integer_ratio()}"
    if isinstance(node, ast.BinOp):
        return OPERATORS.get(type(node.op))
    if isinstance(node, ast.Compare):
        return COMPARISONS.get(type(node.ops[0])) or "write x < y and y < z"
    return STATEMENTS.get(type(node)) or EXPRESSIONS.get(type(node))
