"""Plans of learned claims: what is judged and how, fixed in a committed file before the run that is judged.

A claim that trains networks declares `PLAN`. `vitrify plan NAME` writes it to `docs/plans/NAME.vK.json` with a digest
of the plan and of the code that judges: the claim's file and every module of `claims` that it imports, without
docstrings, comments and drawings. A threshold that moves changes the digest, and so does a changed judging function.
Evidence is recorded only where a plan with this digest was committed before the run began.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal

from vitrify.certification import evidence
from vitrify.certification.domains import JsonData
from vitrify.encoding import JsonMapping, JsonObject, canonical, parsed
from vitrify.errors import InputError
from vitrify.files import bundled, write_text
from vitrify.registry import Headline, source_of

PACKAGE, CLAIMS = "vitrify.claims", Path(__file__).parents[1]
PLANS = Path("docs") / "plans"
RECORDS = Path("docs") / "evidence"  # what recording writes; it may differ from the last commit
VERDICTS = Path(evidence.__file__), Path(__file__).with_name("judging.py")  # how criteria and nulls become verdicts
MACHINERY = "vitrify.claims.protocol", "vitrify.claims.catalogue"  # of the rest nothing decides a verdict
SHOWN = ("draw",)  # functions that show evidence and judge nothing
MIN_REJECTION = 0.95  # share of the null's draws that the check of a statement must reject
NULL_DRAWS = 200
ScaleLabel = Literal["same", "larger", "reduced", "own"]


@dataclass(frozen=True)
class Statement(JsonData):
    """One sentence that is judged: what it `says`, the `rule` by which it holds, and the nearest `null` hypothesis."""

    says: str
    rule: str
    null: str


@dataclass(frozen=True)
class Axis(JsonData):
    """The size of one axis here and in the source; `theirs` is None where the task or the net is of our own making.

    A text stands for what has no order, or is unknown ("?"); it is the same only where both texts are equal.
    """

    ours: float | str
    theirs: float | str | None

    @property
    def label(self) -> ScaleLabel:
        """Return how this axis compares with theirs: same, larger, reduced, or own where they have none."""
        if self.theirs is None:
            return "own"
        if isinstance(self.ours, str) or isinstance(self.theirs, str):
            return "same" if self.ours == self.theirs else "reduced"
        return "same" if self.ours == self.theirs else "larger" if self.ours > self.theirs else "reduced"


@dataclass(frozen=True)
class Plan(JsonData):
    """Statements of a learned claim and the units that they are judged on, fixed before the run.

    `units` names what is drawn independently (a grammar, a seed). `judged` are the numbers of the units of the judged
    run, `explored` those that sizes, rates and thresholds were chosen on. `chosen` says what exploration led to.
    `changed` says what is different from the version before, and why.
    """

    version: int
    question: str
    statements: Mapping[str, Statement]
    units: str
    judged: Sequence[int]
    explored: Sequence[int]
    stopping: str
    scale: Mapping[str, Axis] = field(default_factory=dict)
    chosen: str = ""
    changed: str = ""
    min_rejection: float = MIN_REJECTION

    def __post_init__(self) -> None:
        for name in ("judged", "explored"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, kind in (("statements", Statement), ("scale", Axis)):
            entries = getattr(self, name).items()
            values = {key: kind.from_json(each) if isinstance(each, dict) else each for key, each in entries}
            object.__setattr__(self, name, values)
        both = sorted(set(self.judged) & set(self.explored))
        if both:
            raise InputError(f"units that were explored can't be judged: {', '.join(map(str, both))}")
        if self.version < 1 or not self.statements:
            raise InputError("a plan has a version from 1 on, and at least one statement")

    @property
    def label(self) -> ScaleLabel:
        """Return the scale of the run: own if any axis is of our making, else reduced if any is, else larger."""
        labels = {axis.label for axis in self.scale.values()}
        order: tuple[ScaleLabel, ...] = ("own", "reduced", "larger", "same")
        return next((label for label in order if label in labels), "own")


def digest(headline: Headline, plan: Plan) -> str:
    """Return the digest of a plan, of the code that judges it, and of the rules that make verdicts."""
    hasher = hashlib.sha256(canonical(plan).encode())
    outside = ("", headline.path) if headline.path is not None else None
    judging = _judging(outside or source_of(PACKAGE, headline.name)) | {path.stem: path for path in VERDICTS}
    for name, path in sorted(judging.items()):
        hasher.update(f"{name}\n{_code(path.read_text(encoding='utf-8'))}".encode())
    return hasher.hexdigest()[:16]


def _judging(claim: tuple[str, Path]) -> dict[str, Path]:
    """Return a claim's module and those of its package that it imports, directly or not, with their files."""
    root, path = claim
    modules: dict[str, Path] = {}
    new = {path.stem: path}
    while new:
        modules |= new
        imported = {name: found for each in new.values() for name, found in _imported(each, root, path.parent)}
        imported |= {name: found for each in new.values() for name, found in _imported(each, PACKAGE, CLAIMS)}
        new = {name: found for name, found in imported.items() if name not in modules}
    return modules


@cache
def _imported(source: Path, package: str, folder: Path) -> tuple[tuple[str, Path], ...]:
    """Return the modules of a package, in its folder, that a source file imports, but for the machinery.

    A file outside all packages, `package` "", imports those beside it.
    """
    modules: dict[str, Path] = {}
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            path = folder.joinpath(*name.removeprefix(package).strip(".").split(".")).with_suffix(".py")
            inside = not package or f"{name}.".startswith(f"{package}.")
            if inside and not name.startswith(MACHINERY) and path.is_file():
                modules[name] = path
    return tuple(modules.items())


def _code(text: str) -> str:
    """Return a source text without docstrings, whole-line comments, blank lines and functions that draw."""
    lines = text.splitlines()
    for start, end in _silent(ast.parse(text)):
        lines[start - 1 : end] = [""] * (end - start + 1)
    kept = (line.rstrip() for line in lines)
    return "\n".join(line for line in kept if line and not line.lstrip().startswith("#"))


def _silent(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of docstrings and of functions that draw."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in SHOWN:
            yield node.lineno, node.end_lineno or node.lineno
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield first.lineno, first.end_lineno or first.lineno


# Files


def plans_folder() -> Path:
    """Return `docs/plans` of the working directory, or else the plans that come with vitrify."""
    return PLANS if PLANS.is_dir() else bundled(str(PLANS)) or PLANS


def write_plan(headline: Headline, plan: Plan, judged: bool, folder: Path | None = None) -> Path:
    """Write a plan with its digest; a version that evidence was recorded for (`judged`) is not written again.

    Its file stays as it is while only code has changed: evidence can be reproduced, but not recorded again.
    """
    path = (folder or PLANS) / f"{headline.name}.v{plan.version}.json"
    data: JsonObject = {"name": headline.name, "id": headline.fields["id"], "plan": plan.to_json()}
    data["digest"] = digest(headline, plan)
    before = read_plan(headline, plan.version, path.parent) if path.exists() else {}
    if before.get("digest") == data["digest"] or (judged and before.get("plan") == data["plan"]):
        return path
    if before and judged:
        raise InputError(
            f"version {plan.version} of {headline.name} was judged by another plan: raise PLAN.version, "
            f"take new units, and say in `changed` what is different"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, canonical(data | {"date": f"{datetime.now(UTC):%Y-%m-%d}"}))
    return path


def read_plan(headline: Headline, version: int, folder: Path | None = None) -> JsonMapping:
    """Return the plan file of a version as data; empty if there is none."""
    path = (folder or plans_folder()) / f"{headline.name}.v{version}.json"
    if not path.exists():
        return {}
    try:
        data = parsed(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path} must be JSON that 'vitrify plan' wrote: {error}") from None
    if not isinstance(data, dict) or data.get("name") != headline.name or not isinstance(data.get("digest"), str):
        raise InputError(f"{path} must be a plan of {headline.name}: 'vitrify plan {headline.argument}' writes it")
    return data


def committed(headline: Headline, plan: Plan, began: datetime, root: Path | None = None) -> JsonObject:
    """Return plan version, digest and commit for evidence of a run that began at a time, or refuse with the reason.

    The plan file must be that of this plan and code, unchanged since a commit older than the run, in a clean tree.
    """
    root = root or Path()
    path = PLANS / f"{headline.name}.v{plan.version}.json"
    own, data = digest(headline, plan), read_plan(headline, plan.version, root / PLANS)
    again = f"'vitrify plan {headline.argument}' writes it; commit it before the run"
    if not data:
        raise InputError(f"{path} is not there, so nothing can be recorded: {again}")
    if data["digest"] != own:
        raise InputError(
            f"{path} is of another plan or other code (digest {data['digest']}, now {own}): a changed threshold or "
            "judging function is a new version, with new units"
        )
    changed = _git(root, "status", "--porcelain", "--", ".", f":!{RECORDS}").splitlines()
    if changed:
        raise InputError(f"the tree is not clean ({changed[0].strip()}): commit first, then run and record")
    commit, _, when = _git(root, "log", "-1", "--format=%H %ct", "--", str(path)).strip().partition(" ")
    if not commit:
        raise InputError(f"{path} is not committed, so nothing shows that it is older than the run: commit it first")
    if int(when) > began.timestamp():
        day = f"{datetime.fromtimestamp(int(when), UTC):%Y-%m-%d %H:%M}"
        raise InputError(f"{path} was committed {day} UTC, after the run began ({began:%Y-%m-%d %H:%M}): run again")
    return {"version": plan.version, "digest": own, "commit": commit[:12], **plan.to_json()}


def _git(root: Path, *words: str) -> str:
    """Return what git prints."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"git can't be asked whether the plan is older than the run: {error}") from None
    if done.returncode:
        raise InputError(
            "this is no git repository, so nothing shows that the plan is older than the run: save the measurements "
            "with --measurements DIR, and record them with --from DIR where the repository is"
        )
    return done.stdout
