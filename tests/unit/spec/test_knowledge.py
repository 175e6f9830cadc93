"""Knowledge: what it means, its files, and every way in which a file can be wrong."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.memory.knowledge import Knowledge, KnowledgeTask, large_world, random_world, xor_world

ROOT = Path(__file__).parents[3]
WORLD = Knowledge.read(ROOT / "examples" / "world.knowledge.toml")
SPECS = {"world": WORLD, "XOR": xor_world()} | {
    f"random {seed}": random_world(seed, long_keys=(seed % 3) / 4, shared_words=(seed % 4) / 6, anchored=seed % 2 == 0)
    for seed in range(12)
}


def readings(spec: Knowledge, words: tuple[str, ...]) -> set[tuple[str, str]]:
    """What a sequence asks for, from nothing but the definition: every way to cut a key out of it."""
    found = set()
    for task in spec.tasks:
        for start in range(len(words)):
            for stop in range(start + 1, len(words) + 1):
                template = (*words[:start], "#", *words[stop:])
                for key, value in task.facts:
                    if template in task.templates and key == words[start:stop]:
                        found.add((task.name, value))
    return found


@each("name", SPECS)
def test_answers_are_those_of_the_definition(name: str) -> None:
    spec = SPECS[name]
    rng = np.random.default_rng(0)
    asked = list(spec.queries)
    for words in asked[:200]:
        asked += [words[1:], words[:-1], (*words, words[0])]
        changed = list(words)
        changed[int(rng.integers(len(words)))] = spec.vocabulary[int(rng.integers(len(spec.vocabulary)))]
        asked.append(tuple(changed))
    answered = 0
    for words in asked:
        wanted = readings(spec, words)
        assert len(wanted) <= 1
        assert spec.answer(words) == (wanted.pop() if wanted else None)
        answered += spec.answer(words) is not None
    assert len(spec.queries) <= answered < len(asked)


def test_all_short_sequences_by_hand() -> None:
    spec = Knowledge.of({"t": (["a #", "# b"], {"x": "1", "x y": "2"}), "u": (["# a"], {"b": "3"})})
    found = {
        " ".join(words): spec.answer(words)
        for length in range(5)
        for words in product("abxy", repeat=length)
        if spec.answer(words)
    }
    assert found == {
        "a x": ("t", "1"),
        "a x y": ("t", "2"),
        "x b": ("t", "1"),
        "x y b": ("t", "2"),
        "b a": ("u", "3"),
    }
    assert spec.longest == 3
    assert spec.vocabulary == ("a", "b", "x", "y")
    assert spec.values == ("1", "2", "3")


@each("name", SPECS)
def test_write_and_read_is_the_identity(name: str, tmp_path: Path) -> None:
    SPECS[name].write(tmp_path / "spec.knowledge.toml")
    again = read_spec(tmp_path / "spec.knowledge.toml")
    assert again == SPECS[name]
    assert hash(again) == hash(SPECS[name])
    assert eval(repr(again), {"Knowledge": Knowledge, "KnowledgeTask": KnowledgeTask}) == again


def test_odd_words_survive(tmp_path: Path) -> None:
    odd = Knowledge.of({'a "b" \\ é]': (["[x] = #", '# "quoted"'], {'k\\"': "v #1", "[y]": "=", "0": "a, b"})})
    odd.write(tmp_path / "x.knowledge.toml")
    assert Knowledge.read(tmp_path / "x.knowledge.toml") == odd


def test_a_file_in_every_notation(tmp_path: Path) -> None:
    path = tmp_path / "x.knowledge.toml"
    path.write_bytes(
        "\ufeff# comment\r\na.templates = ['is   # hot']\r\na.facts = {ice = 'no'}\r\n"
        "['b c']\r\ntemplates = [\r\n 'is # cold', # why\r\n]\r\n['b c'.facts]\r\n'dry  ice' = 'yes'\r\n".encode()
    )
    assert Knowledge.read(path) == Knowledge.of(
        {"a": (["is # hot"], {"ice": "no"}), "b c": (["is # cold"], {"dry ice": "yes"})}
    )


GOOD = '[t]\ntemplates = ["a #"]\n\n[t.facts]\nk = "1"\n'
BAD: list[tuple[str, str, list[tuple[int | None, str]]]] = [
    ("nothing", "", [(None, "at least one task")]),
    ("not TOML", GOOD + "[u\n", [(6, "must be TOML")]),
    ("not closed", GOOD + 'x = "', [(6, "must be TOML")]),
    ("key twice", GOOD + 'k = "2"\n', [(6, "must be TOML")]),
    ("key twice, blanks", GOOD + '"a  b" = "2"\n"a b" = "3"\n', [(7, "the key 'a b' is there twice")]),
    (
        "no table",
        'x = 1\n\n[t]\ntemplates = ["a #"]\nfacts = {k = "1"}\n',
        [(1, "x must be a table with templates, facts, not 1")],
    ),
    (
        "unknown entry",
        GOOD + '\n[u]\ntemplates = ["b #"]\nvalues = {}\nfacts = {k = "1"}\n',
        [(9, "u.values is not a parameter; there are: templates, facts")],
    ),
    ("no templates", GOOD + '\n[u.facts]\nk = "1"\n', [(7, "at least one template")]),
    ("no facts", GOOD + '\n[u]\ntemplates = ["b #"]\n', [(7, "at least one fact")]),
    (
        "templates no list",
        GOOD + '\n[u]\ntemplates = "b #"\nfacts = {k = "1"}\n',
        [(8, "u.templates must be a list, each entry a text")],
    ),
    (
        "facts no table",
        GOOD + '\n[u]\ntemplates = ["b #"]\nfacts = ["k"]\n',
        [(9, "u.facts must be a table, each entry a text")],
    ),
    ("value no text", GOOD + "j = 7\n", [(6, 't.facts.j must be a text, not 7; write "7"')]),
    ("no slot", GOOD.replace('"a #"', '"a #",\n"b c"'), [(3, "one slot #, 'b c' has 0")]),
    ("two slots", GOOD.replace('"a #"', '"# a #"'), [(2, "'# a #' has 2")]),
    ("glued slot", GOOD.replace('"a #"', '"a#"'), [(2, "it must stand alone")]),
    ("template twice", GOOD.replace('"a #"', '"a #",\n"b #",\n"a #"'), [(4, "'a #' is there twice")]),
    ("slot in a key", GOOD + '"# x" = "2"\n', [(6, "the slot of templates")]),
    ("empty key", GOOD + '"" = "2"\n', [(6, "at least one word")]),
    ("empty value", GOOD + 'x = " "\n', [(6, "must be printable and not empty")]),
    ("reserved value", GOOD + 'x = "<none>"\n', [(6, "reserved for sequences that are not queries")]),
    ("reserved word", GOOD.replace('"a #"', '"<s> #"'), [(2, "reserved for the beginning")]),
    ("odd word", GOOD + '"x\\u0001" = "2"\n', [(6, "must be printable")]),
    (
        "one query, two tasks",
        GOOD + '\n[u]\ntemplates = ["b #",\n "# k"]\nfacts = {a = "2", c = "3"}\n',
        [(9, "the query 'a k' can be read as 'a #' of 't' and as '# k' of 'u'")],
    ),
    (
        "one query, one task",
        '[t]\ntemplates = ["a #", "# k"]\nfacts = {a = "1", k = "1"}\n',
        [(2, "the query 'a k' can be read as 'a #' of 't' and as '# k' of 't'")],
    ),
    ("one query, longer key", GOOD + '\n[u]\ntemplates = ["#"]\nfacts = {"a k" = "2"}\n', [(8, "the query 'a k'")]),
    (
        "several at once",
        '[t]\ntemplates = ["a", "b # #"]\n[t.facts]\nk = "<none>"\n[u]\n',
        [
            (2, "'a' has 0"),
            (2, "'b # #' has 2"),
            (4, "reserved"),
            (5, "at least one template"),
            (5, "at least one fact"),
        ],
    ),
]


@each(("text", "wanted"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_files_say_where_and_why(text: str, wanted: list[tuple[int | None, str]], tmp_path: Path) -> None:
    path = tmp_path / "bad.knowledge.toml"
    path.write_text(text)
    with pytest.raises(SpecError) as refused:
        Knowledge.read(path)
    problems = refused.value.problems
    assert {problem.file for problem in problems} == {str(path)}
    assert sorted(line or 0 for line, _ in wanted) == sorted(problem.line or 0 for problem in problems)
    for line, said in wanted:
        assert any(problem.line == line and said in problem.message for problem in problems), (line, said)


def test_files_that_are_not_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.knowledge.toml").write_bytes(b"[t]\n# \xff\n")
    with pytest.raises(SpecError, match=r"x\.knowledge\.toml:2: the file must be UTF-8"):
        Knowledge.read(tmp_path / "x.knowledge.toml")
    with pytest.raises(SpecError, match="can't be read"):
        Knowledge.read(tmp_path / "nowhere.knowledge.toml")
    with pytest.raises(SpecError, match=r"must end in \.knowledge\.toml"):
        Knowledge.read(tmp_path / "x.toml")


def test_values_are_checked_when_they_are_made() -> None:
    with pytest.raises(SpecError, match="the task 't' is there twice"):
        Knowledge(
            (KnowledgeTask("t", (("a", "#"),), ((("k",), "1"),)), KnowledgeTask("t", (("b", "#"),), ((("k",), "1"),)))
        )
    with pytest.raises(SpecError, match="without blanks"):
        Knowledge((KnowledgeTask("t", (("a b", "#"),), ((("k",), "1"),)),))
    with pytest.raises(SpecError, match="name of a task"):
        Knowledge((KnowledgeTask("", (("a", "#"),), ((("k",), "1"),)),))


def test_the_large_world_is_as_large_as_it_says() -> None:
    spec = large_world()
    assert len(spec.tasks) == 200
    assert sum(len(task.facts) for task in spec.tasks) == 20_000
    assert len(spec.queries) == 30_000
    keys = [key for task in spec.tasks for key, _ in task.facts]
    assert len(set(keys)) < len(keys) / 100


def test_anchors_belong_to_one_task_each() -> None:
    for seed in range(8):
        spec = random_world(seed, anchored=True)
        words = [{word for template in task.templates for word in template} for task in spec.tasks]
        for number, task in enumerate(spec.tasks):
            others = set().union(*words[:number], *words[number + 1 :])
            assert all(set(template) - others for template in task.templates)
