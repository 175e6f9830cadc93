"""Claims in files of a user: the same contract as in the catalogue, one message for every refusal, no traces."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import vitrify as v
from command_line import vitrify
from documents import ROOT, blocks
from vitrify.claims import TEMPLATE, protocol
from vitrify.claims.catalogue import ClaimPage, find, named, run_claim
from vitrify.claims.protocol.planning import digest
from vitrify.errors import ClaimError, InputError

EXAMPLES = ROOT / "examples" / "claims"
GOOD = '''"""Squares of small numbers are small.

Statement: The square of a number below ten is below a hundred.
Checked: All numbers from zero to nine.
Not checked: Numbers that are not whole.
Source: It is well known to all [S].
Saboteur: The number ten is among those squared.
"""
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Subject, quantities


def subjects():
    yield Subject("digits", data={"numbers": range(10)})


def check(subject):
    largest = max(number**2 for number in subject.data["numbers"])
    found = Evidence("holds", 10, (Domain("numbers", Method.EXHAUSTIVE, 10),))
    return found.adding(*quantities({"largest": 99}, {"largest": largest}, "<="))


def sabotage(subject):
    return subject.with_data(numbers=[10])


CLAIM = Claim(subjects, check, sabotage, id="R900", standing="theorem", uncertified="about numbers, not networks")
'''
(PLANNED,) = [block.text for block in blocks(ROOT / "docs" / "contribute" / "claim-files.md", "python")]


def written(folder: Path, *changes: tuple[str, str], text: str = GOOD, name: str = "mine.py") -> Path:
    """Write a claim with some changes, each of which must change something."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, *words: str) -> str:
    """Return the one message of a command that is refused, in a folder with `mine.py`."""
    done = vitrify(*(words or ("check", "./mine.py")), cwd=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert not done.stdout
    assert "Traceback" not in done.stderr
    assert all(line.startswith(("error: ", "  ")) for line in done.stderr.splitlines())
    return done.stderr


# Verdicts


@pytest.mark.parametrize(
    ("name", "verdict", "code", "sentence"),
    [
        ("counters_run_on_log_layers", "holds", 0, "1 of 1 hold"),
        ("letters_commute_in_automata_of_two_states", "fails", 1, "'word': '10', 'state': '0', 'state in order': '1'"),
        ("counters_with_a_saboteur_that_breaks_nothing", "undecided", 1, "'m = 2, T = 4', 'm = 2, T = 16'"),
    ],
)
def test_the_three_examples(name: str, verdict: str, code: int, sentence: str) -> None:
    done = vitrify("check", EXAMPLES / f"{name}.py", columns=400)
    assert done.returncode == code, done.stderr
    assert verdict in done.stdout
    assert sentence in done.stdout
    assert ("proves nothing" in done.stdout) == (verdict == "undecided")
    done = vitrify("check", EXAMPLES / f"{name}.py", "--json")
    (outcome,) = json.loads(done.stdout)
    assert (outcome["name"], outcome["saboteur_rejected"]) == (name, verdict != "undecided")
    assert vitrify("show", EXAMPLES / f"{name}.py").returncode == 0


def test_what_is_checked_is_that_every_example_is_tested() -> None:
    assert len(list(EXAMPLES.glob("*.py"))) == 3


def test_the_template_holds_as_it_is(tmp_path: Path) -> None:
    done = vitrify("new", "claim", "mine", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "mine.py").read_text(encoding="utf-8") == TEMPLATE.read_text(encoding="utf-8")
    (outcome,) = json.loads(vitrify("check", "./mine.py", "--json", cwd=tmp_path).stdout)
    assert (outcome["name"], outcome["evidence"]["verdict"]) == ("mine", "holds")
    assert {part["verdict"] for part in outcome["saboteurs"].values()} == {"fails"}
    assert len(outcome["certificates"]) == 9
    sizes = {each["name"]: each for part in outcome["evidence"]["parts"].values() for each in part["quantities"]}
    assert {"layers", "d_model", "units"} <= set(sizes)


def test_the_law_of_the_template_is_compared(tmp_path: Path) -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    for old, new in (("2 * m + 2 * depth", "2 * m + depth"), ("2 * m**2 + 1", "m**2 - 1")):
        written(tmp_path, (old, new), text=text)
        done = vitrify("check", "mine.py", cwd=tmp_path)
        assert done.returncode == 1
        assert "fails" in done.stdout


def test_a_new_claim_is_written_into_a_folder_and_overwrites_nothing(tmp_path: Path) -> None:
    assert vitrify("new", "claim", "a_b", "-o", "deep/er", cwd=tmp_path).returncode == 0
    (tmp_path / "deep" / "er" / "a_b.py").write_text("mine")
    assert "exists" in refused(tmp_path, "new", "claim", "a_b", "-o", "deep/er")
    assert (tmp_path / "deep" / "er" / "a_b.py").read_text() == "mine"
    for name in ("A", "a-b", "../a", "a b", "9a", "", "_a", "a__b"):
        assert "small letters" in refused(tmp_path, "new", "claim", name)
    assert vitrify("new", "theorem", "a_b", cwd=tmp_path).returncode == 2


def test_showing_a_file_does_not_run_it(tmp_path: Path) -> None:
    written(tmp_path, ("CLAIM = ", "1 / 0\nCLAIM = "))
    done = vitrify("show", "./mine.py", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert (data["name"], data["id"], data["title"]) == ("mine", "R900", "Squares of small numbers are small")
    assert data["not_checked"] == "Numbers that are not whole."
    assert "about numbers, not networks" in vitrify("show", "./mine.py", cwd=tmp_path).stdout


def test_files_and_claims_of_the_catalogue_are_named_together(tmp_path: Path) -> None:
    here, other = written(tmp_path), written(tmp_path, name="other.py")
    assert [page.name for page in named([str(here), "R14", str(other)])] == [
        "mine",
        "any_automaton_runs_in_log_depth",
        "other",
    ]
    (tmp_path / "deep").mkdir()
    again = written(tmp_path / "deep")
    with pytest.raises(InputError, match=r"deep/mine\.py.* have one name: rename one"):
        named([str(here), str(again)])


# What the text alone says


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (GOOD, "", ["mine.py: the file must begin with a docstring", "mine.py:1: CLAIM is missing"]),
        ('"""Squares', '"Squares', ["this is not Python"]),
        ("def check(subject):", "def check(subject)", ["mine.py:16: this is not Python: expected ':'"]),
        ("are small.\n\n", "are small\n\n", ["the first line of the docstring must be a sentence"]),
        ("Checked: All numbers from zero to nine.\n", "", ["mine.py: the docstring lacks Checked:"]),
        ("Source: It is well known to all [S].\n", "", ["the docstring lacks Source:"]),
        ("Source:", "Origin:", ["lacks Source:", "a line begins with Origin:, which is no section"]),
        ("Saboteur:", "Checked: again the same numbers\nSaboteur:", ["there are two sections Checked:"]),
        (
            "Source:",
            "Saboteur: Ten is among them all.\nSource:",
            ["two sections Saboteur:", "stand in the order Statement"],
        ),
        (
            "Statement:",
            "Before it.\nStatement:",
            ["text before the first section belongs into a section: 'Before it.'"],
        ),
        ("It is well known to all [S].", "Folklore [S].", ["Source: says too little (at least 4 words)"]),
        ("CLAIM = ", "CLAIM: Claim = ", ["mine.py:26: CLAIM must be assigned by a plain statement"]),
        ("CLAIM = ", "CLAIM = None\nCLAIM = ", ["mine.py:27: CLAIM is assigned several times (lines 26, 27)"]),
        ("CLAIM = Claim(subjects", "CLAIM = Claim(*[subjects]", ["must be written out"]),
        ("sabotage, id", "id", ["Claim lacks sabotage"]),
        ('id="R900", ', "", ["Claim lacks id"]),
        ('"R900"', '"X9"', ["id must be a text such as 'R14'"]),
        ('"R900"', 'str("R900")', ["id must be a text such as 'R14'"]),
        ('"theorem"', '"lemma"', ["standing must be one of 'theorem', 'experiment', 'conjecture'"]),
        ("uncertified=", "certified=", ["certified must be one of 'proved', 'exhaustive', 'sampled'"]),
        (', uncertified="about numbers, not networks"', "", ["needs either certified='…'", "or uncertified='…'"]),
        ("uncertified=", 'certified="proved", uncertified=', ["needs either certified='…'"]),
        ("uncertified=", "budget_seconds=0, uncertified=", ["budget_seconds must be a number of seconds above 0"]),
        ('"R900"', '"L900"', ["ids of claims about training or generalization, which have a plan, begin with L or G"]),
        ("uncertified=", "colour=1, uncertified=", ["Claim has no colour; it has subjects, check,"]),
        (
            "uncertified=",
            "plan=PLAN, uncertified=",
            ["Claim has no plan; it has subjects, check, sabotage, id, "],
        ),
    ],
)
def test_a_text_that_breaks_the_contract_is_refused(old: str, new: str, messages: list[str], tmp_path: Path) -> None:
    written(tmp_path, (old, new))
    for words in (("check", "./mine.py"), ("show", "./mine.py")):
        found = refused(tmp_path, *words)
        for message in messages:
            assert message in found


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    written(
        tmp_path, ("are small.\n\n", "are small\n\n"), ("Source: It is well known to all [S].\n", ""), ("R900", "9")
    )
    lines = refused(tmp_path).splitlines()
    assert [re.sub(r"^error: mine\.py:(\d*:)? ", "", line)[:9] for line in lines] == [
        "the first",
        "the docst",
        "id must b",
    ]


def test_what_is_no_file_or_no_text_is_refused(tmp_path: Path) -> None:
    assert "there is no file mine.py: 'vitrify new claim NAME'" in refused(tmp_path)
    (tmp_path / "mine.py").write_bytes(b"\xff\xfe")
    assert "this is not Python" in refused(tmp_path)
    (tmp_path / "mine.py").write_bytes(b"a = 1\x00")
    assert "this is not Python" in refused(tmp_path)
    (tmp_path / "folder.py").mkdir()
    assert "there is no file" in refused(tmp_path, "check", "folder.py")


# What its code does


IMPORTS, YIELDS, CHECKS = "\n\ndef subjects", "    yield Subj", "    largest = "
RETURNS, BREAKS = "    return found.", "    return subject.with"
TWICE = '    yield Subject("digits", data={"numbers": [1]})\n'
OF_BROKEN = "check on what the saboteur made of 'digits' raised ZeroDivisionError"


@pytest.mark.parametrize(
    ("before", "inserted", "message"),
    [
        (IMPORTS, "1 / 0", "mine.py:10: importing the file raised ZeroDivisionError: division by zero"),
        (IMPORTS, "import no_such", "mine.py:10: importing the file: No module named 'no_such': install it"),
        (IMPORTS, "import sys; sys.exit(0)", "importing the file raised SystemExit: 0"),
        (CHECKS, "    1 / 0\n", "mine.py:17: check on 'digits' raised ZeroDivisionError"),
        (CHECKS, "    import no_such\n", "mine.py:17: check on 'digits': No module named"),
        (CHECKS, "    1 / (10 - max(subject.data['numbers']))\n", OF_BROKEN),
        (YIELDS, "    yield {}[0]\n", "mine.py:13: subjects raised KeyError: 0"),
        (YIELDS, "    return\n", "mine.py has no subjects"),
        (YIELDS, TWICE, "two subjects have the name 'digits'"),
        (YIELDS, "    yield 3\n", "subjects must give a Subject each time, and gave a value of type int"),
        (BREAKS, "    raise OSError\n", "mine.py:23: sabotage on 'digits' raised OSError"),
        (RETURNS, "    return True\n", "check on 'digits' must give Evidence, and gave a value of type bool"),
        (BREAKS, "    return\n", "sabotage on 'digits' must give a Subject, and gave a value of type NoneType"),
    ],
)
def test_code_that_breaks_the_contract_is_refused(before: str, inserted: str, message: str, tmp_path: Path) -> None:
    written(tmp_path, (before, inserted + before))
    assert message in refused(tmp_path)


HONEST = [("    found = ", "    bad = largest > 99\n    found = "), ('"holds", 10', '"fails" if bad else "holds", 10')]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("Claim(subjects, check", "Claim(subjects, 3")], "check must be a function, and is of type int"),
        ([("Claim(subjects, check", "Claim(subjects, None")], "check must be given, and is None"),
        ([("CLAIM = Claim(", "CLAIM = None or Claim(")], "a plain statement CLAIM = Claim"),
        ([('"holds", 10,', '"holds", 0,')], "the evidence on 'digits' lacks a case (cases is 0)"),
        ([('(Domain("numbers", Method.EXHAUSTIVE, 10),)', "()")], "the evidence on 'digits' lacks a domain"),
        ([('{"largest": 99}', "{}"), *HONEST], "lacks a quantity with a declared value, or a criterion"),
        ([('uncertified="about numbers, not networks"', 'certified="proved"')], "declare uncertified='the reason'"),
    ],
)
def test_a_claim_with_too_little_in_it_is_refused(changes: list[tuple[str, str]], message: str, tmp_path: Path) -> None:
    written(tmp_path, *changes)
    assert message in refused(tmp_path)


def test_a_method_that_is_not_the_declared_one_is_refused(tmp_path: Path) -> None:
    text = (EXAMPLES / "counters_run_on_log_layers.py").read_text(encoding="utf-8")
    written(tmp_path, ('certified="proved"', 'certified="sampled"'), text=text)
    assert "the weakest certificate is 'proved': declare certified='proved'" in refused(tmp_path)


def test_an_error_in_python_has_its_cause(tmp_path: Path) -> None:
    path = written(tmp_path, ("    largest = ", "    1 / 0\n    largest = "))
    with pytest.raises(ClaimError, match=r"mine\.py:17: check on 'digits'") as error:
        v.check(str(path))
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_refusals_of_vitrify_in_a_check_keep_their_message(tmp_path: Path) -> None:
    written(tmp_path, ("    largest = ", "    import vitrify as v\n    v.read('no.cfg')\n    largest = "))
    assert "mine.py:18: check on 'digits': " in refused(tmp_path)


def test_a_value_that_differs_from_the_text_is_refused(tmp_path: Path) -> None:
    written(
        tmp_path,
        ("def subjects", "Real = Claim\ndef Claim(*a, **k): return Real(*a, **{**k, 'id': 'R1'})\ndef subjects"),
    )
    assert "id is not what CLAIM = Claim(…) says" in refused(tmp_path)


def test_a_claim_that_is_of_another_class_is_refused(tmp_path: Path) -> None:
    written(tmp_path, ("def subjects", "def Claim(*a, **k): return 3\ndef subjects"))
    assert "CLAIM must be a Claim, and is a int" in refused(tmp_path)


# Imports from its folder


def state() -> tuple[list[str], set[str], set[str]]:
    return list(sys.path), set(sys.modules), {str(each) for each in sys.path_importer_cache}


HELPED = (
    ("\n\ndef subjects", "import helper_of_mine\n\n\ndef subjects"),
    (
        "    largest = ",
        "    import helper_of_mine as again, late_helper\n    assert again is helper_of_mine\n    largest = ",
    ),
    ("number**2", "late_helper.square(number)"),
)


def test_a_file_imports_from_its_folder_and_leaves_no_trace(tmp_path: Path) -> None:
    written(tmp_path, *HELPED)
    (tmp_path / "helper_of_mine.py").write_text("import package_of_mine.inner\n")
    (tmp_path / "late_helper.py").write_text("def square(x):\n    return x * x\n")
    (tmp_path / "package_of_mine").mkdir()
    (tmp_path / "package_of_mine" / "inner.py").write_text("import colorsys\n")
    v.check(str(written(tmp_path, name="plain.py")))  # what vitrify itself imports stays
    import colorsys  # noqa: F401

    before = state()
    page = find(str(tmp_path / "mine.py"))
    assert state() == before
    assert run_claim(page).verdict == "holds"
    assert state() == before
    assert run_claim(page).verdict == "holds", "once more, with the modules that it has imported"
    written(tmp_path, ("number**2", "number**2 // 0"), name="broken.py")
    with pytest.raises(ClaimError):
        v.check(str(tmp_path / "broken.py"))
    assert state() == before
    assert not list(tmp_path.glob("__pycache__/mine*"))


def test_modules_of_elsewhere_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "module_of_elsewhere.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    (tmp_path / "here").mkdir()
    path = written(tmp_path / "here", ("\n\ndef subjects", "import module_of_elsewhere\n\n\ndef subjects"))
    try:
        assert v.check(str(path)).verdict == "holds"
        assert "module_of_elsewhere" in sys.modules
    finally:
        sys.modules.pop("module_of_elsewhere", None)


def test_a_folder_that_is_on_the_path_stays_there_with_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "known_to_all.py").write_text("")
    path = written(tmp_path, ("\n\ndef subjects", "import known_to_all\n\n\ndef subjects"))
    before = list(sys.path)
    try:
        assert v.check(str(path)).verdict == "holds"
        assert sys.path == before
        assert "known_to_all" in sys.modules
        assert "mine" not in sys.modules
    finally:
        sys.modules.pop("known_to_all", None)


def test_helpers_of_one_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    for folder, limit in (("one", 99), ("two", 1)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper_of_mine.py").write_text(f"LIMIT = {limit}\n")
        written(
            tmp_path / folder, ("\n\ndef subj", "from helper_of_mine import LIMIT\n\n\ndef subj"), ('": 99', '": LIMIT')
        )
    verdicts = [v.check(str(tmp_path / folder / "mine.py")).verdict for folder in ("one", "two", "one")]
    assert verdicts == ["holds", "fails", "holds"]


def test_a_file_that_is_named_like_a_module_does_not_replace_it(tmp_path: Path) -> None:
    before = sys.modules["json"]
    own = "import sys\nassert vars(sys.modules[__name__]) is globals()\n"  # as dataclasses and pickle look it up
    path = written(tmp_path, (IMPORTS, own + IMPORTS), name="json.py")
    assert v.check(str(path)).verdict == "holds"
    assert sys.modules["json"] is before


def test_a_file_that_was_edited_is_read_again(tmp_path: Path) -> None:
    assert v.check(str(written(tmp_path))).verdict == "holds"
    assert v.check(str(written(tmp_path, ('": 99', '": 11')))).verdict == "fails"


def test_an_error_in_a_helper_is_located_there(tmp_path: Path) -> None:
    written(tmp_path, *HELPED)
    (tmp_path / "helper_of_mine.py").write_text("x = (\n")
    assert "helper_of_mine.py:1: importing the file raised SyntaxError" in refused(tmp_path)
    (tmp_path / "helper_of_mine.py").write_text("")
    (tmp_path / "late_helper.py").write_text("def square(x):\n    return x / 0\n")
    assert "late_helper.py:2: check on 'digits' raised ZeroDivisionError" in refused(tmp_path)


# Recording, and claims about training


def test_evidence_of_a_file_is_recorded_and_shown(tmp_path: Path) -> None:
    written(tmp_path)
    assert vitrify("check", "./mine.py", "--record", "evidence", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "evidence" / "mine.json").read_text())["settings"]
    done = vitrify("evidence", "./mine.py", "--evidence", "evidence", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "R900" in done.stdout
    assert "'vitrify check mine.py --record" in refused(tmp_path, "evidence", "./mine.py", "--evidence", "nowhere")
    assert "checks that of a file" in vitrify("atlas", "--only", "./mine.py", cwd=tmp_path).stderr


def test_a_claim_about_training_is_measured_and_judged(tmp_path: Path) -> None:
    written(tmp_path, text=PLANNED)
    done = vitrify("check", "./mine.py", "--measurements", "saved", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "100% rejected" in done.stdout
    assert "mine: holds: growth" in done.stdout
    done = vitrify("check", "./mine.py", "--from", "saved", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nearest null" in vitrify("show", "./mine.py", cwd=tmp_path).stdout
    assert "docs/plans/mine.v1.json is not there" in refused(tmp_path, "check", "./mine.py", "--record", "evidence")


def test_a_statement_whose_null_passes_is_undecided(tmp_path: Path) -> None:
    same = "    return measured\n    norms = rng"
    written(tmp_path, ("    norms = rng", same), text=PLANNED)
    done = vitrify("check", "./mine.py", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "mine: undecided: growth" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (', statement="growth"', "", "judge on '20 points of the plane' must give criteria with statement=…"),
        ('statement="growth"', 'statement="other"', "of the plan's growth, and names other"),
        ('NULLS = {"growth": converged}', "NULLS = {}", "each statement of the plan needs a null hypothesis"),
        ('NULLS = {"growth": converged}', 'NULLS = {"growth": 3}', "the null of 'growth' must be a function"),
        ('NULLS = {"growth": converged}', "NULLS = [converged]", "nulls must be a Mapping"),
        ("PLAN = Plan(", "PLAN = dict(", "plan must be a Plan"),
        ("planned(PLAN,", "planned(3,", "plan must be a Plan"),
        ('"L900"', '"R900"', "which have a plan, begin with L or G, and no others"),
        ("    norms = rng", "    rng + rng\n    norms = rng", "mine.py:68: the null of 'growth' raised TypeError"),
        ('    return {"norms": np.array(norms)}', "    return norms", "of the plane' must give arrays by name"),
        ("judge, NULLS, m", "nulls=NULLS, m", "Claim.planned lacks judge"),
        ("judged=range(100, 116)", "judged=range(10, 26)", "units that were explored can't be judged"),
    ],
)  # fmt: skip
def test_a_claim_about_training_that_breaks_the_contract_is_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    written(tmp_path, (old, new), text=PLANNED)
    assert message in refused(tmp_path)


def test_the_digest_of_a_plan_covers_the_files_that_are_imported(tmp_path: Path) -> None:
    def digest_with(helper: str, name: str) -> str:
        (tmp_path / f"{name}.py").write_text(helper)
        text = PLANNED.replace("import numpy as np\n", f"import numpy as np\nimport {name}\n")
        page = find(str(written(tmp_path, text=text)))
        plan = protocol.files.guarded(page).plan
        assert plan is not None
        return digest(page, plan)

    assert digest_with("LIMIT = 1\n", "helper_of_plan") != digest_with("LIMIT = 2\n", "helper_of_plan")
    assert digest_with("LIMIT = 1\n", "helper_of_plan") == digest_with("LIMIT = 1\n", "helper_of_plan")


def test_a_page_of_a_file_names_its_path(tmp_path: Path) -> None:
    page = find(str(written(tmp_path)))
    assert isinstance(page, ClaimPage)
    assert (page.name, page.argument) == ("mine", str(tmp_path / "mine.py"))
    assert find("R14").argument == "any_automaton_runs_in_log_depth"
