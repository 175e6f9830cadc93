r"""Read programs of Tracr from their own Python source: they become programs of ours, with the same values.

A file is run as Python, with `language.py` in the place of `tracr.rasp.rasp`, so that Tracr need not be installed; run
only files that you trust. `conversion.py` converts what it defines.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from traceback import extract_tb
from types import ModuleType, SimpleNamespace
from typing import Any

from vitrify.errors import InputError, Problem, SpecError
from vitrify.interop.tracr import language
from vitrify.interop.tracr.conversion import converted
from vitrify.spec.formats.headed import MAX_WORD_LENGTH
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.values import symbols_of

BOS = "compiler_bos"  # as `compile_rasp_to_model` calls the first token by default


def from_tracr(
    source: str | Path | language.SOp,
    symbols: Iterable[object] | None = None,
    length: int | None = None,
    *,
    causal: bool | None = None,
) -> Program:
    """Return a program written for Tracr as a program of ours, for words over `symbols` of up to `length` of them.

    `source` is `FILE.py:NAME`. NAME is an SOp, what `compile_rasp_to_model` returned, or a function without arguments
    that returns either; it may be left out if the file calls `compile_rasp_to_model` once. What is not given here
    (`symbols`, `length`, `causal`) is taken from the call that returned NAME, or from the only call with this SOp.
    """
    sop, name, call = (source, "program", None) if isinstance(source, language.SOp) else _read(str(source))
    if call is not None:
        symbols, length = call.symbols if symbols is None else symbols, call.length if length is None else length
        causal = call.causal if causal is None else causal
    if symbols is None or length is None:
        missing = "no length" if symbols is not None else "no symbols" if length is not None else ""
        raise InputError(f"{source}: the program has {missing or 'neither symbols nor a length'}: give both")
    symbols = tuple(symbols)
    odd = [symbol for symbol in symbols if not isinstance(symbol, bool | int | float | str)]
    if odd or not symbols or not 1 <= length <= MAX_WORD_LENGTH:
        given = f"the symbol {odd[0]!r}" if odd else f"{len(symbols)} symbols and the length {length}"
        raise InputError(
            f"{source}: symbols must be numbers or strings, one at least, and the length from 1 to "
            f"{MAX_WORD_LENGTH:,}; given: {given}"
        )
    return converted(sop, symbols, length, bool(causal), name)


def _read(source: str) -> tuple[language.SOp, str, Compiled | None]:
    """Run a file; return the SOp that is named, its name, and the call of the compiler with it, if there is one."""
    file, colon, name = source.rpartition(":") if not source.endswith(".py") else (source, "", "")
    path = Path(file)
    if not file.endswith(".py") or not path.is_file():
        raise InputError(f"a program of Tracr is given as FILE.py:NAME, and {file or source} is no such file")
    calls: list[Compiled] = []
    with installed(path, calls):
        names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
        _attempt(path, lambda: exec(compile(path.read_bytes(), str(path), "exec"), names))
        sop = names.get(name) if colon else (calls[0] if len(calls) == 1 else None)
        if callable(sop) and not isinstance(sop, language.RASPExpr):
            sop = _attempt(path, sop)
    if isinstance(sop, Compiled):
        calls = [sop]
        sop = sop.sop
    if not isinstance(sop, language.SOp):
        kinds = (language.SOp, Compiled)
        found = [key for key, value in names.items() if isinstance(value, kinds) and not key.startswith("_")]
        what = f"{name} is {'not there' if sop is None else f'a {type(sop).__name__}'}" if colon else "NAME is missing"
        raise InputError(
            f"{source}: {what}; name an SOp ({', '.join(found) or 'there is none'}), "
            "what compile_rasp_to_model returned, or a function without arguments that returns either"
        )
    same = [call for call in calls if call.sop is sop]
    return sop, name or path.stem, same[0] if len(same) == 1 else None


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
    """Let `import tracr` find our modules for as long as a file runs, and record its calls of the compiler.

    Ours are `tracr.rasp.rasp` and `tracr.compiler.compiling`. Others, such as `tracr.compiler.lib`, are those of a
    folder `tracr` beside the file, or of an installed Tracr.
    """

    def compile_rasp_to_model(
        program: language.SOp,
        vocab: Iterable[object],
        max_seq_len: int,
        causal: bool = False,
        compiler_bos: object = BOS,
        *_args: object,
        **_options: object,
    ) -> Compiled:
        call = Compiled(program, tuple(vocab), max_seq_len, causal, compiler_bos)
        calls.append(call)
        return call

    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "tracr"}
    modules = {name: ModuleType(name) for name in ("tracr", "tracr.rasp", "tracr.compiler", "tracr.compiler.compiling")}
    modules["tracr.rasp.rasp"] = language
    modules["tracr.compiler.compiling"].__dict__.update(compile_rasp_to_model=compile_rasp_to_model, COMPILER_BOS=BOS)
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
    """What `compile_rasp_to_model` returns: a network of ours, which is built when it is first applied.

    Its options but `vocab`, `max_seq_len`, `causal` and `compiler_bos` change nothing.
    """

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
        """Return an object with one attribute: `decoded`, the first token and then the value at every position."""
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
