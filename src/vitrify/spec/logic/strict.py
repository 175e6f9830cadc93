r"""Past-time formulas in terms of one temporal operator, strict since, as heads with a strict mask read it.

$\varphi\,S'\,\psi$ is true at a position iff $\psi$ held at an earlier one and $\varphi$ at all positions between them.

| formula | in these terms |
| --- | --- |
| $Y\varphi$ | $\bot\,S'\,\varphi$ |
| $\varphi\,S\,\psi$, $O\psi$ | $\psi \lor (\varphi \land \varphi\,S'\,\psi)$, with $\varphi = \top$ for $O$ |
| $H\varphi$ | $\varphi \land \lnot(\top\,S'\,\lnot\varphi)$ |
| $Y(\varphi\,S\,\psi)$, $YO\psi$ | $\varphi\,S'\,\psi$ itself |

A *term* is a tuple of an operator and its operands: `("letters", letters)`, a set of them; `("MOD", r, m)`;
`("AT", p, q, …)`; `("not", x)`; `("and", x, y)`; `("iff", x, y)`; `("chain", x, y, z)`, which is $x \lor (y \land
z)$; `("strict", x, y)`.
Whatever depends on the letter alone, constants too, is one set of letters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from vitrify.spec.logic.ltl import Formula, Node
from vitrify.spec.logic.truth import POSITIONAL, leaf_text

Term: TypeAlias = tuple[Any, ...]
MAX_TEXT = 40  # letters of the text of a term


class StrictTerms:
    """The terms of a formula over its alphabet; `root` is the formula itself."""

    def __init__(self, formula: Formula) -> None:
        self.alphabet = formula.alphabet
        self.true, self.false = ("letters", frozenset(self.alphabet)), ("letters", frozenset[str]())
        self._known: dict[Node, Term] = {}
        self._texts: dict[Term, str] = {}
        self.root = self._term(formula.node)

    def parts(self) -> tuple[Term, ...]:
        """Return every term once, operands first, with the marks of strict since."""
        return tuple(dict.fromkeys(self._parts(self.root, {})))

    def mark(self, term: Term) -> Term:
        """Return where a strict since is decided: its right side holds, or its left side does not."""
        return self.either(self.negated(term[1]), term[2])

    def text(self, term: Term) -> str:
        """Return a term as a formula, shortened in the middle of long ones."""
        if term not in self._texts:
            self._texts[term] = _shortened(self._text(term))
        return self._texts[term]

    def _text(self, term: Term) -> str:
        operator, *data = term
        inner = [self.text(part) for part in data if isinstance(part, tuple)]
        if operator == "letters":
            return self._set_text(term)
        inner = [f"({part})" if " " in part else part for part in inner]
        if operator == "not":
            return f"!{inner[0]}"
        if operator in POSITIONAL:
            return str(leaf_text(operator, data))
        if operator == "strict":
            return f"Y {inner[1]}" if data[0] == self.false else f"Y ({_since(inner[0], inner[1])})"
        if operator == "chain":
            return _since(inner[1], inner[0])
        return f" {'&' if operator == 'and' else '<->'} ".join(inner)

    def _set_text(self, term: Term) -> str:
        """Return a set of letters, or what is not in it if that is shorter."""
        chosen = [letter for letter in self.alphabet if letter in term[1]]
        if not chosen or len(chosen) == len(self.alphabet):
            return "true" if chosen else "false"
        if 2 * len(chosen) <= len(self.alphabet):
            return " | ".join(chosen)
        others = self._set_text(self.negated(term))
        return f"!({others})" if " " in others else f"!{others}"

    def negated(self, x: Term) -> Term:
        if x[0] == "letters":
            return ("letters", self.true[1] - x[1])
        return x[1] if x[0] == "not" else ("not", x)

    def both(self, x: Term, y: Term) -> Term:
        if self.false in (x, y) or x == self.negated(y):
            return self.false
        if self.true in (x, y) or x == y:
            return y if x == self.true else x
        if x[0] == y[0] == "letters":
            return ("letters", x[1] & y[1])
        return ("and", x, y)

    def either(self, x: Term, y: Term) -> Term:
        return self.negated(self.both(self.negated(x), self.negated(y)))

    def same(self, x: Term, y: Term) -> Term:
        for one, other in ((x, y), (y, x)):
            if one in (self.true, self.false):
                return other if one == self.true else self.negated(other)
        if x[0] == y[0] == "letters":
            return self.either(self.both(x, y), self.both(self.negated(x), self.negated(y)))
        return ("iff", x, y)

    def strict(self, x: Term, y: Term) -> Term:
        """Return the strict since of two terms."""
        if y == self.false:
            return y
        return ("strict", self.false if y == self.true else x, y)

    def since(self, x: Term, y: Term) -> Term:
        """Return the since that includes the present."""
        z = self.strict(x, y)
        if y in (self.true, self.false) or x == self.false:
            return y
        return self.either(y, z) if x == self.true else ("chain", y, x, z)

    def _term(self, node: Node) -> Term:
        if node not in self._known:
            self._known[node] = self._new_term(node)
        return self._known[node]

    def _new_term(self, node: Node) -> Term:
        operator, *data = node
        if operator == "letter":
            return ("letters", frozenset(data))
        if operator in ("true", "false"):
            return self.true if operator == "true" else self.false
        if operator == "MOD":
            return ("MOD", int(data[0]), int(data[1])) if int(data[1]) > 1 else self.true
        if operator == "AT":
            return ("AT", *map(int, data))
        if operator == "Y":
            return self._yesterday(data[0])
        return self._combined(operator, [self._term(part) for part in data])

    def _combined(self, operator: str, inner: list[Term]) -> Term:
        first, last = inner[0], inner[-1]
        if operator == "not":
            return self.negated(first)
        if operator == "H":
            return self.both(first, self.negated(self.strict(self.true, self.negated(first))))
        if operator in ("O", "S"):
            return self.since(self.true if operator == "O" else first, last)
        if operator == "implies":
            return self.either(self.negated(first), last)
        return {"and": self.both, "or": self.either, "iff": self.same}[operator](first, last)

    def _yesterday(self, node: Node) -> Term:
        if node[0] in ("O", "S"):
            return self.strict(self.true if node[0] == "O" else self._term(node[1]), self._term(node[-1]))
        return self.strict(self.false, self._term(node))

    def _parts(self, term: Term, seen: dict[Term, None]) -> Iterator[Term]:
        if term in seen:
            return
        seen[term] = None
        operands = [part for part in term[1:] if isinstance(part, tuple)]
        for part in [*operands, *([self.mark(term)] if term[0] == "strict" else [])]:
            yield from self._parts(part, seen)
        yield term


def _since(left: str, right: str) -> str:
    return f"O {right}" if left == "true" else f"{left} S {right}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT // 2]}…{text[-MAX_TEXT // 2 + 1 :]}"
