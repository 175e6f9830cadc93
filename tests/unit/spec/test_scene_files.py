"""`.scene.toml` files: read back what was written, and every problem with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.formats.data import read_data
from vitrify.spec.geometry.scene import Scene, random_bitmaps, random_scene

ROOT = Path(__file__).parents[3]
GOOD = """\
image = [8, 8]
eps = 0.1
gamma = 0.3
[features]
dot = [[[0, 0], [0, 1]]]
bar = [
  [[0, 1], [0, 1]],
  [[0, 0], [1, 1]],
]
tip = [[[1, 0], [0, 0]]]
[composites]
pair = [["dot", 0, 0], ["bar", 2, 0]]
[classes]
a = ["pair"]
b = ["tip"]
"""


def problems(text: str, folder: Path) -> list[str]:
    path = folder / "x.scene.toml"
    path.write_text(text)
    with pytest.raises(SpecError) as error:
        Scene.read(path)
    return [str(problem).removeprefix(f"{path}:").strip() for problem in error.value.problems]


@pytest.mark.parametrize("scene", [random_scene(0), random_scene(1, composites=2), random_bitmaps(3)])
def test_reading_undoes_writing(scene: Scene, tmp_path: Path) -> None:
    scene.write(tmp_path / "x.scene.toml")
    assert read_spec(tmp_path / "x.scene.toml") == scene


def test_the_example_is_a_scene() -> None:
    scene = Scene.read(ROOT / "examples" / "faces.scene.toml")
    assert scene.names == ("roof", "door", "tail", "head")
    assert scene.noise == 0.05


BAD: list[tuple[str, str, str, list[str]]] = [
    ("not TOML", "eps = 0.1", "eps = = 0.1", ["2: the file must be TOML: Invalid value"]),
    ("cut off", 'b = ["tip"]\n', 'b = ["tip"', ["15: the file must be TOML"]),
    ("unknown key", "eps = 0.1", "eps = 0.1\nepsilon = 1", ["3: epsilon is not a parameter; there are: image, eps"]),
    ("no gamma", "gamma = 0.3\n", "", ["gamma is missing"]),
    ("image", "[8, 8]", "[8, 0]", ["1: image.1 (rows, columns) must be a whole number of at least 1, not 0"]),
    ("eps", "eps = 0.1", "eps = -1", ["2: eps must be a number of at least 0, not -1"]),
    ("gamma", "gamma = 0.3", "gamma = 0", ["3: gamma must be a number above 0, not 0"]),
    ("truth", "eps = 0.1", "eps = true", ["2: eps must be a number"]),
    ("nan", "eps = 0.1", "eps = nan", ["2: eps must be a number"]),
    ("noise", "eps = 0.1", "eps = 0.1\nnoise = 0.2", ["3: noise must be at most eps = 0.1"]),
    ("no table", "image", "classes = 3\nimage", ["14: the file must be TOML"]),
    (
        "no table either",
        '[classes]\na = ["pair"]\nb = ["tip"]\n',
        "[[classes]]\n",
        ["13: classes (a list of features by name) must be a table of at least 1"],
    ),
    (
        "no variants",
        "dot = [[[0, 0], [0, 1]]]",
        "dot = []",
        ["5: features.dot (a list of variants by name) must be a list of at least 1"],
    ),
    ("grid", "[[[0, 0], [0, 1]]]", "[3]", ["5: variant 1 of the feature 'dot' must be a grid"]),
    (
        "ragged",
        "[[0, 0], [0, 1]]]",
        "[[0, 0], [0]]]",
        ["5: variant 1 of the feature 'dot' must have rows of one"],
    ),
    (
        "word in a grid",
        "[[0, 0], [0, 1]]]",
        '[[0, "x"], [0, 1]]]',
        ["5: variant 1 .* rows of finite numbers"],
    ),
    ("sizes", "[[[0, 0], [0, 1]]]", "[[[0, 0, 1]]]", ["4: all variants .* one size, got 1×3 .* 2×2"]),
    (
        "too large",
        "[8, 8]",
        "[1, 8]",
        [
            "4: variant 1 of 'dot' has 2×2 pixels, the image only 1×8",
            "12: the composite 'pair' takes 4×2",
        ],
    ),
    (
        "same",
        "[[0, 0], [1, 1]],",
        "[[0, 0], [0, 1]],",
        ["6: variant 1 of 'dot' and variant 2 of 'bar' are the same"],
    ),
    (
        "half there",
        "gamma = 0.3",
        "gamma = 1",
        ["6: variant 1 of 'dot' and variant 1 of 'bar' are 0.9 apart"],
    ),
    (
        "both at once",
        "[[0, 0], [1, 1]],",
        "[[0, 0.85], [0, 1]],",
        ["6: variant 1 of 'bar' and variant 2 of 'bar' differ by 0.15"],
    ),
    (
        "one part",
        '[["dot", 0, 0], ["bar", 2, 0]]',
        '[["dot", 0, 0]]',
        ["12: composites.pair ([part, rows down, columns right]) must be a list of at least 2"],
    ),
    (
        "odd part",
        '["bar", 2, 0]',
        '["bar", 2, 0.5]',
        ["12: composites.pair.1.2 ([part, rows down, columns right]) must be a whole number, not 0.5"],
    ),
    ("unknown part", '["bar", 2, 0]', '["bor", 2, 0]', ["12: the part 'bor' of 'pair' is neither"]),
    ("overlap", '["bar", 2, 0]', '["bar", 1, 1]', ["12: the parts 'bar' and 'dot' of 'pair' overlap"]),
    (
        "cycle",
        '["bar", 2, 0]]',
        '["more", 2, 0]]\nmore = [["bar", 0, 0], ["pair", 2, 0]]',
        ["12: .*pair → more → pair", "13: .*more → pair → more"],
    ),
    (
        "name taken",
        "pair =",
        'dot = [["bar", 0, 0], ["bar", 2, 0]]\npair =',
        ["12: 'dot' is a feature already"],
    ),
    (
        "same composite",
        "[classes]\n",
        'again = [["dot", 1, 1], ["bar", 3, 1]]\n[classes]\nc = ["again"]\n',
        ["13: the composite 'again' is the same as 'pair'"],
    ),
    (
        "empty class",
        'b = ["tip"]',
        "b = []",
        ["15: classes.b (a list of features by name) must be a list of at least 1"],
    ),
    ("unknown feature", 'b = ["tip"]', 'b = ["tup"]', ["15: the class 'b' has 'tup', which is neither"]),
    ("listed twice", 'b = ["tip"]', 'b = ["bar", "bar"]', ["15: the class 'b' lists a feature twice"]),
    (
        "no antichain",
        'a = ["pair"]',
        'a = ["tip", "pair"]',
        ["14: an image of 'a' has all that 'b' asks for"],
    ),
    (
        "no antichain by parts",
        'b = ["tip"]',
        'b = ["tip"]\nc = ["dot"]',
        ["14: an image of 'a' has all that 'c' asks for"],
    ),
    (
        "equal classes",
        'b = ["tip"]',
        'b = ["tip"]\nc = ["tip"]',
        ["16: an image of 'c' has all that 'b' asks for"],
    ),
    (
        "implied",
        'a = ["pair"]',
        'a = ["pair", "bar"]',
        ["14: the class 'a' has 'bar' twice: it is a part of 'pair'"],
    ),
    ("reserved", 'b = ["tip"]', '"(none)" = ["tip"]', ["15: a class has a printable name"]),
    ("unused", 'b = ["tip"]', 'b = ["bar"]', ["10: 'tip' is in no class and no composite"]),
]


@each(("old", "new", "said"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_files(old: str, new: str, said: list[str], tmp_path: Path) -> None:
    assert old in GOOD
    found = problems(GOOD.replace(old, new), tmp_path)
    for pattern in said:
        literal = pattern if ".*" in pattern else re.escape(pattern)
        assert any(re.match(literal, problem) for problem in found), found
    assert len(found) <= len(said) + 3, found


def test_the_good_file_is_good(tmp_path: Path) -> None:
    (tmp_path / "x.scene.toml").write_text(GOOD)
    assert Scene.read(tmp_path / "x.scene.toml").names == ("tip", "pair")


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("eps = 0.1", "eps = -1").replace('["bar", 2, 0]', '["bor", 2, 0]').replace('["tip"]', '["tap"]')
    lines = [int(problem.split(":")[0]) for problem in problems(text, tmp_path)]
    assert lines == sorted(lines)
    assert {2, 12, 15} <= set(lines)


def test_pairs_that_are_too_close_are_counted(tmp_path: Path) -> None:
    grids = ", ".join(f"[[{k / 10}]]" for k in range(10))
    text = f'image = [3, 3]\neps = 0.01\ngamma = 5\n[features]\nf = [{grids}]\n[classes]\na = ["f"]\n'
    found = problems(text, tmp_path)
    assert len(found) == 21
    assert "25 more pairs of variants are too close" in found[0]


def test_other_names_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"must end in \.scene\.toml"):
        Scene.read(tmp_path / "x.toml")
    with pytest.raises(SpecError, match="can't be read"):
        Scene.read(tmp_path / "x.scene.toml")


def test_lines_of_a_toml_file(tmp_path: Path) -> None:
    text = '''\
# a = 1
top = """
[not.a.table]
x = 2
"""
[ "a b" . c ] # d = 3
list = [
  [1, 2],  # ] "
  "x = 1",
]
deep.er = {z = 1}
other = \'[k]\'
'''
    (tmp_path / "x.toml").write_text(text)
    file = read_data(tmp_path / "x.toml")
    assert file.lines == {
        ("top",): 2,
        ("a b",): 6,
        ("a b", "c"): 6,
        ("a b", "c", "list"): 7,
        ("a b", "c", "list", "0"): 8,
        ("a b", "c", "list", "0", "0"): 8,
        ("a b", "c", "list", "0", "1"): 8,
        ("a b", "c", "list", "1"): 9,
        ("a b", "c", "deep"): 11,
        ("a b", "c", "deep", "er"): 11,
        ("a b", "c", "other"): 12,
    }
    assert file.problem(("a b", "c", "deep", "er", "z"), "!").line == 11
    assert file.problem(("nowhere",), "!").line is None
