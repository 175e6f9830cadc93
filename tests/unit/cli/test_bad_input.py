"""Bad input gives one clear message, with file and line where there is one, exit code 2, and nothing half-written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from command_line import vitrify

ROOT = Path(__file__).parents[3]
WEATHER = (ROOT / "examples" / "weather.arpa").read_text()
MAXOUT = (ROOT / "examples" / "zigzag.maxout.json").read_text()
PARITY = json.loads((ROOT / "examples" / "parity.automaton.json").read_text())


def parity(**changes: object) -> str:
    return json.dumps({**PARITY, **changes})


def without(text: str, start: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(start))


PTM = 'start = "go"\nhalt = []\nblank = "_"\nemits = ["a"]\n[states.go]\n_ = ["1/2 _ R go a", "1/4 _ L go"]\n'
NEVER = """\
start = "go"
halt = []
blank = "_"
alphabet = ["1"]
length = 1
[states.go]
_ = "_ R go"
1 = "1 R go"
"""
PFSA = '{"states": ["q"], "alphabet": ["a"], "initial": {"q": 1}, "transitions": [["q", "a", "q", 0.5]], "final": {}}'

NONDETERMINISTIC = [
    ["even", "0", "even"],
    ["even", "1", "odd"],
    ["even", "1", "even"],
    ["odd", "0", "odd"],
    ["odd", "1", "even"],
]

SPECS: list[tuple[str, str, str, list[str]]] = [
    ("truncated", "lm.arpa", WEATHER[: len(WEATHER) // 2], ["lm.arpa:"]),
    ("no end", "lm.arpa", without(WEATHER, "\\end\\"), ["\\end\\"]),
    ("one n-gram lost", "lm.arpa", without(WEATHER, "-0.29173439624041236\t<s> rain rain"), ["22", "21"]),
    ("malformed number", "lm.arpa", WEATHER.replace("-0.5118833609788743\train", "O.5\train"), ["lm.arpa:9", "O.5"]),
    ("sums off", "lm.arpa", WEATHER.replace("-0.5118833609788743\tsun", "-0.4\tsun"), ["sum to"]),
    ("unclosed quote", "g.cfg", "S -> 'a\n", ["g.cfg:1", "quote"]),
    ("two problems", "g.cfg", "S -> NP\nVP 'x'\n", ["g.cfg:1", "NP", "g.cfg:2", "arrow"]),
    ("sums of rules off", "g.pcfg", "# x\nS -> 'a' [0.5] | 'b' [0.4]\n", ["g.pcfg:2", "0.9"]),
    ("recursive", "g.cfg", "S -> 'a' S | 'b'\n", ["S → S leads back to itself", "--depth"]),
    ("two mistakes", "c.crasp", "alphabet: a b\nlength: 9\nx := #a & b\n#c", ["c.crasp:3: & takes", "c.crasp:4: 'c'"]),
    ("too many values", "c.crasp", "alphabet: a\nlength: 40000\n#a + #a - 1 > 0", ["values"]),
    ("two answers", "w.pairs", "a x\na y\nb\n", ["w.pairs:2: the word 'a'", "w.pairs:3: a line pairs"]),
    ("two roles", "w.facts", "a b c\nb d e\n", ["w.facts:2: 'b' is a subject here"]),
    ("not ARPA", "lm.arpa", "hello\n", ["lm.arpa"]),
    ("empty", "lm.arpa", "", ["lm.arpa"]),
    (
        "incomplete",
        "a.automaton.json",
        parity(transitions={"even": {"0": "even"}, "odd": PARITY["transitions"]["odd"]}),
        ["a.automaton.json", "even", "1"],
    ),
    ("non-deterministic", "a.automaton.json", parity(transitions=NONDETERMINISTIC), ["even", "1"]),
    ("unknown state", "a.automaton.json", parity(initial="strange"), ["strange"]),
    (
        "unknown letter",
        "a.automaton.json",
        parity(transitions={**PARITY["transitions"], "odd": {"0": "odd", "1": "even", "2": "odd"}}),
        ["2"],
    ),
    ("not JSON", "a.automaton.json", '{"states": [,]}', ["a.automaton.json:1"]),
    ("too deep", "f.ltl", f"alphabet: a\n{'(' * 9999}a{')' * 9999}\n", ["f.ltl", "nested too deep"]),
    ("too many digits", "t.task.toml", f'task = "recall"\npairs = {"9" * 9999}\n', ["t.task.toml", "too many digits"]),
    ("unbalanced", "e.regex", "# a comment\n(ab|ba*\n", ["e.regex:2"]),
    ("empty expression file", "e.regex", "# nothing\n", ["e.regex"]),
    ("unknown class", "x.patterns", "A = x\n\nA B\n", ["x.patterns:3", "'B' is not defined"]),
    ("empty class", "x.patterns", "A =\nA\n", ["x.patterns:1", "at least one word"]),
    ("class defined twice", "x.patterns", "A = x\nA = y\nA\n", ["x.patterns:2", "defined twice"]),
    ("no patterns", "x.patterns", "A = x\n", ["x.patterns", "at least one pattern"]),
    ("open quote", "x.patterns", 'A = x\nA "b\n', ["x.patterns:2", "not closed"]),
    ("not TOML", "w.knowledge.toml", "[t]\ntemplates = [\n", ["w.knowledge.toml", "TOML"]),
    (
        "no slot",
        "w.knowledge.toml",
        '[t]\ntemplates = ["a b"]\nfacts = {k = "1"}\n',
        ["w.knowledge.toml:2", "one slot #"],
    ),
    ("no facts", "w.knowledge.toml", '# x\n[t]\ntemplates = ["a #"]\n', ["w.knowledge.toml:2", "at least one fact"]),
    (
        "two readings",
        "w.knowledge.toml",
        '[t]\ntemplates = ["a #"]\nfacts = {k = "1"}\n[u]\ntemplates = ["# k"]\nfacts = {a = "2"}\n',
        ["w.knowledge.toml:5", "the query 'a k' can be read as 'a #' of 't' and as '# k' of 'u'"],
    ),
    ("widths differ", "n.maxout.json", MAXOUT.replace("[[1, -1]]", "[[1]]"), ["n.maxout.json:6: layer 3", "2 units"]),
    ("not a number", "n.maxout.json", MAXOUT.replace("[[[3]", "[[[true]"), ["n.maxout.json:4: layer 1: weights"]),
    ("points go back", "f.maxout.json", '{"points": [[0, 0], [0, 1]]}', ["f.maxout.json", "from left to right"]),
    ("no tensors", "n.maxout.safetensors", "hello", ["n.maxout.safetensors", "safetensors"]),
    ("too large", "n.maxout.json", MAXOUT.replace("9", "9e20"), ["activations may grow", "smaller weights"]),
    ("not TOML", "x.scene.toml", "image = [8, 8\n", ["x.scene.toml:2", "TOML"]),
    (
        "two problems of a scene",
        "x.scene.toml",
        'image = [4, 4]\neps = 0.1\ngamma = 0\n[features]\nf = [[[1]]]\n[classes]\na = ["f"]\nb = ["f", "g"]\n',
        ["x.scene.toml:3: gamma must be", "x.scene.toml:8: the class 'b' has 'g'"],
    ),
    (
        "two problems of a circuit",
        "c.aag",
        "aag 2 1 0 1 1\n2\n4\n4 2 4\ni3 x\n",
        ["c.aag:4: the gate 4 depends on itself", "c.aag:5: there is no i3"],
    ),
    ("a cycle", "c.aag", "aag 2 1 0 1 1\n2\n4\n4 2 4\n", ["c.aag:4: the gate 4 depends on itself"]),
    ("it never halts", "m.tm.toml", NEVER, ["no step limit", "does not halt within 10000 steps: add steps = …"]),
    ("no such state", "m.tm.toml", NEVER.replace("R go", "R gone"), ["m.tm.toml:7: a rule of 'go' goes to 'gone'"]),
    ("a sum of rules off", "m.ptm.toml", PTM, ["m.ptm.toml:6: the probabilities of 'go' on '_' must sum to 1", "3/4"]),
    ("sums of states off", "p.pfsa.json", PFSA, ["p.pfsa.json: ", "leave 'q' or to end there must sum to 1"]),
    ("one node", "g.connectivity", "nodes: a\n", ["g.connectivity:1: there must be at least 2 nodes and at most"]),
    ("unknown task", "x.task.toml", 'task = "juggling"\n', ["x.task.toml:1: there is no task 'juggling'", "k-hop"]),
    (
        "task with four mistakes",
        "x.task.toml",
        'task = "k-hop"\nhops = 0\nsymbols = "many"\ndepth = 1\n',
        [
            "x.task.toml: length is missing",
            "x.task.toml:2: hops must be a whole number from 1 to 100,000, not 0",
            'x.task.toml:3: symbols must be a whole number from 1 to 100,000, not "many"',
            "x.task.toml:4: depth is not a parameter; there are: hops",
        ],
    ),
    (
        "more pairs than keys",
        "x.task.toml",
        'task = "recall"\nkeys = 2\nvalues = 2\npairs = 3\nqueries = 1\nfused = true\n',
        ["x.task.toml:4: pairs must be at most keys = 2"],
    ),
    (
        "larger sets than words",
        "x.task.toml",
        'task = "sparse-averaging"\nlength = 4\nsparsity = 5\ndimensions = 1\n',
        ["x.task.toml:3: sparsity must be at most length = 4"],
    ),
    (
        "sparsity and dimensions out of range",
        "x.task.toml",
        'task = "sparse-averaging"\nlength = 4\nsparsity = 0\ndimensions = 99\n',
        [
            "x.task.toml:3: sparsity must be a whole number from 1 to 64, not 0",
            "x.task.toml:4: dimensions must be a whole number from 1 to 64, not 99",
        ],
    ),
    (
        "two sets that are none",
        "x.task.toml",
        'task = "sparse-averaging"\nlength = 4\nsparsity = 2\ndimensions = 1\nsets = ["1,5", "3,3", "1,2"]\n',
        ["x.task.toml:5: sets must each be 2 positions from 1 to 4 in order", "one is '1,5'", "one is '3,3'"],
    ),
    (
        "modulus of one",
        "x.task.toml",
        'task = "match2"\nmodulus = 1\nlength = 8\n',
        ["x.task.toml:2: modulus must be a whole number from 2 to 131,072, not 1"],
    ),
    (
        "reach beyond the word",
        "x.task.toml",
        'task = "match3-local"\nmodulus = 5\nlength = 8\nreach = 8\n',
        ["x.task.toml:4: reach must be below length = 8, not 8"],
    ),
    (
        "modulus that float64 does not carry",
        "x.task.toml",
        'task = "match3-bigram"\nmodulus = 20011\nlength = 8\n',
        ["'select: a match' needs 'sum of both' within", "use a smaller spec or maximum length"],
    ),
    ("unknown kind", "model.txt", "hello", ["model.txt", ".arpa"]),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "text", "said"), [case[1:] for case in SPECS], ids=[case[0] for case in SPECS])
def test_bad_specs(name: str, text: str, said: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    done = vitrify("build", tmp_path / name, "-o", tmp_path / "out" / "net")
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    for part in said:
        assert part in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]  # nothing half-written


RASP, LTL, CRASP = (
    "alphabet: a b\nlength: 5\nsees: everything\n",
    "alphabet: a b\nlength: 5\n",
    "alphabet: a b\nlength: 5\n",
)

# Files with two faults or more: every line that is told, in order.
FAULTS: dict[str, tuple[str, str, list[str]]] = {
    "header of a program": (
        "x.rasp",
        "alphabet: a a\nlength: 0\nsees: right\nreturn tokens",
        [":1: the alphabet has a twice", ":2: the length must be", ":3: 'sees' is 'everything' or 'left'"],
    ),
    "recursion": (
        "x.rasp",
        RASP + "x = x + 1\ny = z\nz = y\nreturn x + w",
        [":4: x is not defined above", ":5: z is not defined above", ":7: w is not defined above"],
    ),
    "syntax and names": (
        "x.rasp",
        RASP + "x = (1 +\ny = 2 $ 3\nz = (lambda: 1)()\nreturn x + y + foo",
        [":4: not an expression", ":5: not an expression", ":6: '(lambda: 1)()' is not part", ":7: foo is not defined"],
    ),
    "ambiguous aggregates": (
        "x.rasp",
        RASP + 'x = aggregate(everywhere, tokens)\ny = aggregate(before, indices)\nreturn x == "a" and y == 1',
        [":4: an aggregate is ambiguous: on the word a b", ":5: an aggregate is ambiguous: on the word a a a"],
    ),
    "an aggregate and values": (
        "x.rasp",
        RASP + 'x = aggregate(everywhere, tokens)\ny = 1 // indices\nz = tokens + 1\nreturn x == "a" and y > z',
        [":4: an aggregate is ambiguous", ":5: '//' divides by", ":6: '+' is for numbers"],
    ),
    "exploding sets of values": (
        "x.rasp",
        "alphabet: a b\nlength: 600\nsees: left\nx = width(marked(tokens == 'a'))\ny = x * x\n"
        "z = indices % (x + 1)\nreturn y + z > 0",
        [":5: '*' would be a table of 601 × 601 = 361,201 rows", ":6: '%' would be a table of 600 × 601 = 360,600"],
    ),
    "exploding tables": (
        "x.rasp",
        "alphabet: a b\nlength: 200\nsees: left\nx = count(tokens == 'a')\ny = count(tokens == 'b')\nz = x * y % 7\n"
        "w = (x * 3 + 1) * (y + 5) % 11\nreturn z + w",
        ["line 6: * needs a table of 201 × 201 = 40,401 rows", "line 7: * needs a table of 201 × 201 = 40,401 rows"],
    ),
    "future": (
        "x.ltl",
        LTL + "p = F a\nq = a U (X b)\nG (p -> q) & c",
        [
            ":3: F refers to the future",
            ":4: U refers to the future",
            ":4: X refers to the future",
            ":5: G refers to the future",
            ":5: 'c' is no letter and no name",
        ],
    ),
    "header of a formula": (
        "x.ltl",
        "alphabet: a b a\nlength: ten\nlength: 4000000\na & d",
        [":1: the alphabet has a twice", ":2: the length", ":3: the line 'length: …' occurs twice", ":4: 'd' is no"],
    ),
    "header of a counting program": (
        "x.crasp",
        "alphabet:\nx := x + 1\n#y + #z > MOD(3, 2)",
        [
            "x.crasp: the line 'length: …'",
            ":1: the alphabet has no",
            ":2: 'x' is",
            ":3: 'y' is",
            ":3: 'z' is",
            ":3: MOD",
        ],
    ),
    "counts": (
        "x.crasp",
        CRASP + "x := #a & b\ny := #c + #d\n#a * #b",
        [":3: & takes", ":4: 'c' is no", ":4: 'd' is no", ":5: * multiplies"],
    ),
    "values of counts": (
        "x.crasp",
        "alphabet: a b\nlength: 40000\nx := #a + #b\ny := #a - #b\nx > y | x = 3",
        [":3: '+' has 80,001 values, more than 65,536", ":4: '-' has 80,001 values, more than 65,536"],
    ),
    "brackets": (
        "x.dyck",
        "brackets: ( ) (\ndepth: 0\nlength: long\nkinds: 3",
        [":1: brackets come in pairs", ":1: the bracket '('", ":2: the depth", ":3: the length", ":4: a line must say"],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("case", FAULTS)
def test_every_fault_is_told_with_its_line(case: str, tmp_path: Path) -> None:
    name, text, said = FAULTS[case]
    (tmp_path / name).write_text(text)
    done = vitrify("build", tmp_path / name, "-o", tmp_path / "net")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == len(said), done.stderr
    for line, part in zip(lines, said, strict=True):
        assert part in line
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_words_longer_than_a_program_are_refused_with_both_ways_out(tmp_path: Path) -> None:
    (tmp_path / "x.rasp").write_text(RASP + "return tokens")
    longer = vitrify("build", tmp_path / "x.rasp", "-o", tmp_path / "net", "--max-length", 6)
    assert longer.returncode == 2
    assert "says how long words are" in longer.stderr
    assert "write 'length: 6' there" in longer.stderr
    assert vitrify("build", tmp_path / "x.rasp", "-o", tmp_path / "short", "--max-length", 4).returncode == 0
    assert vitrify("build", tmp_path / "x.rasp", "-o", tmp_path / "net").returncode == 0
    long = vitrify("run", tmp_path / "net", *"aaaaaa")
    assert long.returncode == 2
    assert "6 tokens" in long.stderr
    assert "at most 5" in long.stderr


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.automaton.json").write_text(parity(initial="x", accepting=["y"]))
    done = vitrify("build", tmp_path / "a.automaton.json", "-o", tmp_path / "net")
    assert len(done.stderr.splitlines()) >= 2
    assert "'x'" in done.stderr
    assert "'y'" in done.stderr


def test_sums_slightly_off_are_a_warning_with_the_figure(tmp_path: Path) -> None:
    text = WEATHER.replace("-0.5118833609788743\tsun", "-0.51185\tsun")
    (tmp_path / "lm.arpa").write_text(text)
    done = vitrify("build", tmp_path / "lm.arpa", "-o", tmp_path / "net", "--max-length", 8)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("warning: ")
    assert "sum to 1.0000" in done.stderr
    assert json.loads(vitrify("certify", tmp_path / "net", "--json").stdout)["verdict"] == "holds"


def test_an_error_is_the_only_message_even_where_the_spec_draws_a_warning(tmp_path: Path) -> None:
    (tmp_path / "lm.arpa").write_text(WEATHER.replace("-0.5118833609788743\tsun", "-0.51185\tsun"))
    done = vitrify("build", tmp_path / "lm.arpa", "-o", tmp_path / "net", "--construction", "log-depth")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "warning: " not in done.stderr


def test_numbers_that_a_network_does_not_read(tmp_path: Path) -> None:
    assert vitrify("build", ROOT / "examples" / "zigzag.maxout.json", "-o", tmp_path / "net").returncode == 0
    refusals: list[tuple[list[object], str | None, str]] = [
        (["-1.5"], None, "from -1 to 1, but x1 is -1.5"),
        (["--stdin"], "0.5\n2\n", "standard input, line 2: the network is right for numbers from -1 to 1"),
    ]
    for words, given, said in refusals:
        done = vitrify("run", tmp_path / "net", *words, given=given)
        assert done.returncode == 2, words
        assert said in done.stderr
    done = vitrify("run", tmp_path / "net", "--tarce", "0.5")
    assert done.returncode == 2
    assert "No such option: --tarce" in done.stderr


@pytest.mark.long
def test_refusals_of_a_construction(tmp_path: Path) -> None:
    regex = ROOT / "examples" / "abba.regex"
    refusals: list[tuple[list[object], str]] = [
        (["--construction", "commutative"], "letters must commute"),
        (["--construction", "heads"], "log-depth"),
        (["--tolerance", "0.1"], "leave --tolerance out"),
        (["--positions", "fourier"], "dyadic"),
        (["--positions", "sqrt", "--max-length", 1_000_000], "smaller maximum length"),
    ]
    for words, said in refusals:
        done = vitrify("build", regex, "-o", tmp_path / "net", *words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--construction", "hebbian", "--dimension", 3], "choose a larger --dimension or another --seed"),
        (["--dimension", 0], "--dimension"),
        (["--construction", "hebbian", "--units", 9], "leave --units out"),
    ],
)
def test_memories_that_are_too_small_or_make_no_sense(words: list[object], said: str, tmp_path: Path) -> None:
    done = vitrify("build", ROOT / "examples" / "capitals.pairs", "-o", tmp_path / "net", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets") / "net"
    assert vitrify("build", ROOT / "examples" / "abba.regex", "-o", folder, "--max-length", 4).returncode == 0
    return folder


def test_unknown_symbols_and_words_that_are_too_long(net: Path) -> None:
    unknown = vitrify("run", net, "a", "x", "y")
    assert unknown.returncode == 2
    assert "'x', 'y'" in unknown.stderr
    long = vitrify("run", net, *"abab", "a")
    assert long.returncode == 2
    assert "5 tokens" in long.stderr
    assert "--max-length 5" in long.stderr
    line = vitrify("run", net, "--stdin", given="a b\na x\n")
    assert line.returncode == 2
    assert "line 2" in line.stderr


def test_a_linear_router_that_can_not_be(tmp_path: Path) -> None:
    text = '[t]\ntemplates = ["a b #", "c d #"]\nfacts.k = "1"\n[u]\ntemplates = ["a d #", "c b #"]\nfacts.k = "2"\n'
    (tmp_path / "xor.knowledge.toml").write_text(text)
    done = vitrify("build", tmp_path / "xor.knowledge.toml", "-o", tmp_path / "net", "--construction", "linear")
    assert done.returncode == 2
    assert "no linear router sends every query to its task" in done.stderr
    assert "--construction hidden" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["xor.knowledge.toml"]


def test_windows_that_can_not_be(tmp_path: Path) -> None:
    for spec, words, said in (
        ("awoke.patterns", ["--window", 1], "at least 2"),
        ("awoke.patterns", ["--construction", "heads"], "the constructions classes, memory, register, not 'heads'"),
        (
            "awoke.patterns",
            ["--construction", "register", "--attention", "hard"],
            "has no such choice: leave --attention out",
        ),
        (
            "awoke.patterns",
            ["--construction", "register", "--positions", "sqrt"],
            "has no such choice: leave --positions out",
        ),
        ("weather.arpa", ["--window", 3], "leave --window out"),
    ):
        done = vitrify("build", ROOT / "examples" / spec, "-o", tmp_path / "net", *words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert not list(tmp_path.iterdir())


def test_certify_refuses_lengths_it_can_not_try(net: Path) -> None:
    done = vitrify("certify", net, "--max-length", "5")
    assert done.returncode == 2
    assert "at most 4" in done.stderr


def damage_missing_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def damage_foreign_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "gpt2"}')


def damage_broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def damage_truncated_weights(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def damage_flipped_weight(folder: Path) -> None:
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-9] ^= 0x40
    (folder / "model.safetensors").write_bytes(bytes(data))


def damage_missing_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def damage_labels(folder: Path) -> None:
    (folder / "labels.json").write_text("[]")


DAMAGES = [
    damage_missing_config,
    damage_foreign_config,
    damage_broken_config,
    damage_truncated_weights,
    damage_flipped_weight,
    damage_missing_weights,
    damage_labels,
]


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_folders_are_refused(damage: object, net: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(net, tmp_path / "net")
    assert callable(damage)
    damage(folder)
    for words in (["run", folder, "a"], ["info", folder]):
        done = vitrify(*words)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    done = vitrify("run", tmp_path / "nowhere", "a")
    assert done.returncode == 2
    assert "is neither a folder nor a run" in done.stderr


def test_build_does_not_overwrite_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("…")
    done = vitrify("build", ROOT / "examples" / "abba.regex", "-o", tmp_path / "precious")
    assert done.returncode == 2
    assert "name another one" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert (tmp_path / "precious" / "thesis.tex").exists()


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes") / "faces"
    assert vitrify("build", ROOT / "examples" / "faces.scene.toml", "-o", folder).returncode == 0
    return folder


def test_images_that_can_not_be_read(faces: Path, net: Path, tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text("1,2\n3,4\n")
    (tmp_path / "ragged.csv").write_text("1,2\n3\n")
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "image.png").write_text("hello")
    for words, said in (
        ([faces, "--input", tmp_path / "small.csv"], "16×16 pixels, not 2×2"),
        ([faces, "--input", tmp_path / "ragged.csv"], "can't be read as an image"),
        ([faces, "--input", tmp_path / "text.npy"], "can't be read as an image"),
        ([faces, "--input", tmp_path / "image.png"], "must end in .npy or .csv"),
        ([faces, "--stdin"], "line 1: this network reads images"),
        ([faces, "--trace"], "--trace follows symbols or one row of numbers"),
        ([faces, "--input", tmp_path / "small.csv", "--all"], "leave the tokens"),
        ([net, "--input", tmp_path / "small.csv"], "reads no images"),
    ):
        done = vitrify("run", *words, given="a b\n")
        assert done.returncode == 2, done.stdout
        assert "Traceback" not in done.stderr
        assert said in done.stderr


def test_shapes_that_a_scene_or_grammar_does_not_have(tmp_path: Path) -> None:
    for spec, words, said in (
        ("faces.scene.toml", ["--construction", "binary"], "zeros and ones"),
        ("faces.scene.toml", ["--max-length", 3], "leave --max-length out"),
        ("ambiguous.cfg", ["--construction", "cnn"], "no hierarchy"),
    ):
        done = vitrify("build", ROOT / "examples" / spec, "-o", tmp_path / "net", *words)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert not list(tmp_path.iterdir())
