"""The protocol of learned claims: what counts as older than a run, one verdict per statement, nulls, stored arrays."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from vitrify.certification.evidence import Criterion, Domain, Evidence, judged
from vitrify.claims.catalogue import Claim, ClaimPage, Null, Outcome, Subject, find
from vitrify.claims.protocol import judging, measurements, planning
from vitrify.claims.protocol.measurements import Measured, Measurements
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.errors import InputError
from vitrify.report import recorded, wording

SOURCE = '''r"""A title."""
from vitrify.claims.trials import ladders

MIN_SHARE = 0.5  # of the seeds


def judge(values):
    """Judge."""
    # by the mean
    return values.mean() >= MIN_SHARE


def draw(figures):
    return "blue"
'''
PAGE = ClaimPage("a_claim_about_training_for_tests", "A title.", {"id": "L1"})


def plan(**changes: object) -> Plan:
    statement = Statement("it grows", "interval of the slope above 1", "it stays")
    values = {"version": 1, "question": "Does it grow?", "statements": {"growth": statement}, "units": "seed"}
    return Plan(**{**values, "judged": range(100, 116), "explored": range(8), "stopping": "fixed", **changes})  # type: ignore[arg-type]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "src" / f"{PAGE.name}.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    monkeypatch.setattr(planning, "source_of", lambda package, _: (package, path))
    monkeypatch.setattr(planning, "_imported", planning._imported.__wrapped__)
    return path


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.5", "0.4"), ("mean()", "max()"), ("ladders", "ngrams"), (">=", ">")],
    ids=["threshold", "judging function", "helper module", "comparison"],
)
def test_what_judges_changes_the_digest(source: Path, old: str, new: str) -> None:
    before = planning.digest(PAGE, plan())
    source.write_text(SOURCE.replace(old, new))
    assert planning.digest(PAGE, plan()) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [("A title", "Another"), ('"""Judge."""', '"""Of seeds."""'), ("# by the mean", "#"), ("blue", "red")],
)
def test_what_only_speaks_or_draws_does_not(source: Path, old: str, new: str) -> None:
    before = planning.digest(PAGE, plan())
    source.write_text(SOURCE.replace(old, new))
    assert planning.digest(PAGE, plan()) == before


@pytest.mark.usefixtures("source")
def test_the_rule_that_makes_verdicts_is_part_of_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, copy = planning.digest(PAGE, plan()), tmp_path / "evidence.py"
    assert {path.name for path in planning.VERDICTS} == {"evidence.py", "judging.py"}
    copy.write_text(planning.VERDICTS[0].read_text().replace('"reversed"', '"holds"'))
    monkeypatch.setattr(planning, "VERDICTS", (copy, *planning.VERDICTS[1:]))
    assert planning.digest(PAGE, plan()) != before


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("change", [{"version": 2}, {"judged": range(200, 216)}, {"stopping": "when it looks good"}])
def test_the_plan_is_part_of_the_digest(change: dict[str, object]) -> None:
    assert planning.digest(PAGE, plan(**change)) != planning.digest(PAGE, plan())


def test_judging_code_is_followed_into_the_modules_it_imports(source: Path) -> None:
    names = set(planning._judging((planning.PACKAGE, source)))
    assert {PAGE.name, "vitrify.claims.trials.ladders"} <= names

    assert not any(name.startswith(planning.MACHINERY) for name in names)


@pytest.fixture
def repository(source: Path) -> Path:
    """A repository with the source and its committed plan."""
    root = source.parents[1]
    git(root, "init", "-q")
    planning.write_plan(PAGE, plan(), judged=False, folder=root / planning.PLANS)
    commit(root)
    return root


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=2)


def test_a_committed_plan_that_is_older_than_the_run_is_accepted(repository: Path) -> None:
    held = planning.committed(PAGE, plan(), soon(), repository)
    assert held["version"] == 1
    assert held["digest"] == planning.digest(PAGE, plan())
    outcome = Outcome(PAGE.name, "L1", "experiment", "t", "large", judged_of([1.5]), True, plan=held)
    assert outcome.criterion_older
    assert wording.plan(outcome) == "plan 1, committed before the run"
    assert outcome.plan_of_run == plan()


def test_recording_may_have_changed_the_evidence_and_nothing_else(repository: Path) -> None:
    (repository / "docs" / "evidence").mkdir()
    (repository / "docs" / "evidence" / "other.json").write_text("{}")
    planning.committed(PAGE, plan(), soon(), repository)
    (repository / "new.txt").write_text("dirty")
    with pytest.raises(InputError, match="tree is not clean"):
        planning.committed(PAGE, plan(), soon(), repository)


def test_a_dirty_tree_is_refused(repository: Path) -> None:
    (repository / "src" / "other.py").write_text("x = 1\n")
    with pytest.raises(InputError, match="tree is not clean"):
        planning.committed(PAGE, plan(), soon(), repository)


@pytest.mark.parametrize(("old", "new"), [("0.5", "0.4"), ("mean()", "max()")])
def test_a_changed_threshold_or_judging_function_is_refused_even_if_committed(
    repository: Path, source: Path, old: str, new: str
) -> None:
    source.write_text(SOURCE.replace(old, new))
    commit(repository)
    with pytest.raises(InputError, match="another plan or other code"):
        planning.committed(PAGE, plan(), soon(), repository)


def test_a_plan_younger_than_the_run_is_refused(repository: Path) -> None:
    with pytest.raises(InputError, match="after the run began"):
        planning.committed(PAGE, plan(), datetime.now(UTC) - timedelta(hours=1), repository)


def test_a_plan_that_is_not_there_or_not_committed_is_refused(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not there"):
        planning.committed(PAGE, plan(version=2), soon(), repository)
    (repository / ".gitignore").write_text("docs/plans\n")
    planning.write_plan(PAGE, plan(version=2), judged=False, folder=repository / planning.PLANS)
    commit(repository)
    with pytest.raises(InputError, match="is not committed"):
        planning.committed(PAGE, plan(version=2), soon(), repository)
    outside = tmp_path / "outside"
    planning.write_plan(PAGE, plan(), judged=False, folder=outside / planning.PLANS)
    with pytest.raises(InputError, match="is not clean"):
        planning.committed(PAGE, plan(), soon(), outside)


def test_a_version_that_was_judged_is_not_written_again(source: Path, tmp_path: Path) -> None:
    path = planning.write_plan(PAGE, plan(), judged=False, folder=tmp_path)
    before = path.read_bytes()
    assert planning.write_plan(PAGE, plan(), judged=True, folder=tmp_path).read_bytes() == before
    source.write_text(SOURCE.replace("0.5", "0.4"))
    assert planning.write_plan(PAGE, plan(), judged=True, folder=tmp_path).read_bytes() == before
    with pytest.raises(InputError, match=r"raise PLAN\.version"):
        planning.write_plan(PAGE, plan(stopping="when it looks good"), judged=True, folder=tmp_path)
    assert path.read_bytes() == before
    planning.write_plan(PAGE, plan(), judged=False, folder=tmp_path)  # not judged yet: a draft
    assert path.read_bytes() != before


def test_explored_units_are_not_judged() -> None:
    with pytest.raises(InputError, match="can't be judged: 4, 5"):
        plan(judged=(4, 5, 100))
    assert Plan.from_json(plan().to_json()) == plan()


@pytest.mark.parametrize(
    ("ours", "theirs", "label"),
    [
        (10, 10, "same"),
        (20, 10, "larger"),
        (5, 10, "reduced"),
        ("text", "text", "same"),
        (5, "?", "reduced"),
        (5, None, "own"),
    ],
)
def test_scale_is_stated_axis_by_axis(ours: float | str, theirs: float | str | None, label: str) -> None:
    assert Axis(ours, theirs).label == label
    assert plan(scale={"a": Axis(1, 1), "b": Axis(ours, theirs)}).label == label


def judged_of(values: list[float], **more: object) -> Evidence:
    criterion = Criterion.judged("slope", values, at_least=1.0, share=0.75, statement="growth")
    return judged([criterion], [Domain("training runs", "trained", len(values))], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("interval", "limits", "verdict"),
    [
        ((1.5, 2.0), {"at_least": 1.3, "null": 1.0}, "holds"),
        ((1.1, 1.2), {"at_least": 1.3, "null": 1.0}, "not reached"),  # the null is rejected, the threshold not met
        ((1.1, 2.0), {"at_least": 1.3, "null": 1.0}, "undecided"),  # too wide
        ((1.1, 2.0), {"at_least": 1.3, "null": 1.0, "published": 1.5}, "undecided"),
        ((1.1, 2.0), {"at_least": 1.3, "null": 1.0, "published": 3.0}, "not reached"),
        ((0.9, 2.0), {"at_least": 1.3, "null": 1.0}, "undecided"),  # null and claim inside
        ((0.9, 1.2), {"at_least": 1.3, "null": 1.0}, "fails"),  # the null inside, no value of the claim
        ((0.5, 0.9), {"at_least": 1.3, "null": 1.0}, "reversed"),
        ((1.5, 2.0), {"at_least": 1.3, "null": 1.0, "published": 3.0}, "not reached"),
        ((2.5, 3.5), {"at_least": 1.3, "null": 1.0, "published": 3.0}, "holds"),
        ((0.9, 1.1), {"at_least": 0.8, "at_most": 1.25}, "holds"),
        ((0.7, 1.1), {"at_least": 0.8, "at_most": 1.25}, "undecided"),
        ((1.3, 1.5), {"at_least": 0.8, "at_most": 1.25}, "fails"),
        ((float("nan"), float("nan")), {"at_least": 1.3, "null": 1.0}, "undecided"),
        ((2.1, 2.4), {"at_most": 1.7, "null": 2.0}, "reversed"),
        ((1.3, 1.6), {"at_most": 1.7, "null": 2.0, "published": 1.0}, "not reached"),
    ],
)
def test_the_verdict_on_an_estimate(interval: tuple[float, float], limits: dict[str, float], verdict: str) -> None:
    value = sum(interval) / 2
    assert Criterion.estimated("x", value, interval, **limits).verdict == verdict  # type: ignore[arg-type]
    if verdict in ("not reached", "reversed", "holds") and "at_most" not in limits:  # the mirror image
        mirrored = {"at_most" if name == "at_least" else name: -each for name, each in limits.items()}
        assert Criterion.estimated("x", -value, (-interval[1], -interval[0]), **mirrored).verdict == verdict  # type: ignore[arg-type]


def test_each_statement_has_a_verdict_and_the_claim_the_worst() -> None:
    def criterion(statement: str, value: float, **more: bool) -> Criterion:
        return Criterion.judged("x", [value], at_least=1.0, statement=statement, **more)

    domains = [Domain("training runs", "trained", 1)]  # type: ignore[arg-type]
    both = judged([criterion("a", 2), criterion("b", 0), criterion("b", 3)], domains)
    assert both.statements == {"a": "holds", "b": "fails"}
    assert both.verdict == "fails"
    unmet = judged([criterion("a", 2), criterion("b", 0), criterion("b", 0, premise=True)], domains)
    assert unmet.statements == {"a": "holds", "b": "undecided"}
    fitted = judged([criterion("", 0, premise=True), criterion("a", 2), criterion("b", 0)], domains)
    assert fitted.statements == {"a": "undecided", "b": "undecided"}  # nothing is concluded from nets that did not fit


def claim_with(null: Null | None) -> Claim:
    def judge(subject: Subject, measured: Measured) -> Evidence:
        del subject
        return judged_of([float(value) for value in measured["slopes"]])

    return Claim.planned(
        plan(),
        lambda: [Subject("seeds")],
        judge,
        {"growth": null} if null else {},
        measure=lambda _: {"slopes": np.array([1.5, 1.6, 1.7, 0.9])},
        id="L1",
        standing="experiment",
    )


@pytest.mark.usefixtures("source")
def test_a_statement_holds_only_if_its_null_is_rejected() -> None:
    def null_at(mean: float) -> Null:
        return lambda _subject, _measured, rng: {"slopes": rng.normal(mean, 0.2, size=4)}

    for mean, verdict in ((0.0, "holds"), (1.2, "undecided")):
        claim = claim_with(null_at(mean))
        held = judging.measure(PAGE, claim, "quick")
        outcome = judging.judge(PAGE, claim, "quick", held)
        assert outcome.evidence.statements == {"growth": "holds"}
        assert outcome.statements == {"growth": verdict}
        assert outcome.verdict == outcome.evidence.verdict == verdict
        assert outcome.saboteur_rejected == (verdict == "holds")
        assert (outcome.rejections["seeds"]["growth"] >= 0.95) == (verdict == "holds")
        assert judging.judge(PAGE, claim, "quick", held) == outcome
        again = Outcome.from_json(outcome.to_json())
        assert again == outcome
        assert outcome.to_json()["summary"]["statements"] == {"growth": verdict}  # type: ignore[index,call-overload]


@pytest.mark.usefixtures("source")
def test_a_statement_without_a_null_is_refused() -> None:
    claim = claim_with(None)
    with pytest.raises(InputError, match="needs a null hypothesis"):
        judging.judge(PAGE, claim, "quick", judging.measure(PAGE, claim, "quick"))


def test_measurements_are_stored_to_the_bit_and_in_parts(tmp_path: Path) -> None:
    arrays = {
        "a": np.array([0.1, np.nan, np.inf]),
        "b": np.array([0.1, 3e38], np.float32).astype(np.float64),
        "n": np.arange(3),
    }
    first = Measurements().adding({"one": arrays}, plan="x", began="2026-01-01T00:00:00+00:00", seconds=2.0)
    path = tmp_path / "m.npz"
    first.save(path)
    held = measurements.load(path)
    for name, array in arrays.items():
        assert array.tobytes() == np.asarray(held.subjects["one"][name]).tobytes()
    second = held.adding(
        {"one": {"c": np.ones(2)}, "two": arrays}, plan="x", began="2025-01-01T00:00:00+00:00", seconds=3.0
    )
    second.save(path)
    again = measurements.load(path)
    assert list(again.subjects) == ["one", "two"]
    assert again.seconds == 5.0
    assert again.began.year == 2025
    before = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="measured already"):
        again.adding({"one": {"c": np.ones(2)}}, began="", seconds=0)


def test_what_is_judged_does_not_depend_on_whether_it_was_stored(tmp_path: Path) -> None:
    third = np.full(3, 1 / 3, np.float32)
    fresh = Measurements().adding({"one": {"a": third}}, began="", seconds=0)
    fresh.save(tmp_path / "m.npz")
    stored = measurements.load(tmp_path / "m.npz").subjects["one"]["a"]
    assert fresh.subjects["one"]["a"].dtype == stored.dtype == np.float64
    assert (fresh.subjects["one"]["a"] / 7).tobytes() == (stored / 7).tobytes()


@pytest.mark.parametrize("content", [b"", b"PK", b"no file of arrays", b"PK\x05\x06" + bytes(18)])
def test_measurements_of_others_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.npz").write_bytes(content)
    with pytest.raises(InputError, match="must be measurements"):
        measurements.load(tmp_path / "m.npz")


def test_every_version_stays(tmp_path: Path) -> None:
    name = "attention_sinks_form_where_a_head_has_nothing_to_do"
    page = find(name)
    outcome = page.recorded()
    older = replace(outcome, plan={})
    recorded.keep(older, tmp_path)
    recorded.keep(replace(outcome, plan={"version": 1}), tmp_path)
    recorded.keep(replace(outcome, plan={"version": 2}), tmp_path)
    recorded.keep(replace(outcome, plan={"version": 2}), tmp_path)
    assert [each.version for each in recorded.all_versions(page, tmp_path)] == [0, 1, 2]
    assert not any(each.criterion_older for each in recorded.all_versions(page, tmp_path))
    assert recorded.recorded_names(tmp_path) == [name]
