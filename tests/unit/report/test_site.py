"""The pages of an atlas: valid, readable without scripts and by everybody, and nothing in them from elsewhere."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import html5lib
import pytest

from atlas_rows import AUTOMATA, DEPTH, HEADLINES, LOOPED, MAP, SWAP, TABLE, live, of_every_kind, part
from vitrify.claims import position
from vitrify.learn.agreement import prediction
from vitrify.report.figures import Drawings
from vitrify.report.frame import LIVE, STATIC, page
from vitrify.report.site import Site, architectures, survey

ROWS = of_every_kind()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a row of every kind; two of them have figures."""
    out = tmp_path_factory.mktemp("site")
    drawings = Drawings(out / "store" / "figures")
    for row in ROWS:
        if row.name in (AUTOMATA, DEPTH) and row.outcome:
            drawings.draw(row.headline, row.outcome)
    Site(out, ROWS, drawings).write()
    return out


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def parsed(path: Path) -> Any:
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(path.read_text(encoding="utf-8"))


@pytest.mark.jax
def test_every_page_is_valid_and_says_its_language_and_title(site: Path) -> None:
    assert len(pages(site)) == len(ROWS) + 3  # index, maps, stories
    for path in pages(site):
        tree = parsed(path)
        assert tree.get("lang") == "en"
        assert tree.findtext(".//title")
        assert len(tree.findall(".//h1")) == 1
        names = [element.get("id") for element in tree.iter() if element.get("id")]
        assert len(names) == len(set(names)), path


@pytest.mark.jax
def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in pages(site):
        tree = parsed(path)
        loaded = [element.get("src") for element in tree.iter() if element.get("src")]
        loaded += [element.get("href") for element in tree.iter("link")]
        followed = [element.get("href") for element in tree.iter("a")]
        for address in [*loaded, *followed]:
            if address in followed and address.startswith("https://arxiv.org/"):
                continue
            file, _, place = address.partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.is_file(), (path.name, address)
            if place:
                assert any(element.get("id") == place for element in parsed(target).iter()), (path.name, address)


@pytest.mark.jax
def test_pictures_have_alternatives_and_fields_have_labels(site: Path) -> None:
    for path in pages(site):
        tree = parsed(path)
        assert all(element.get("alt") is not None for element in tree.iter("img"))
        inside = {
            id(field) for label in tree.iter("label") for field in label.iter() if field.tag in ("input", "select")
        }
        assert all(id(field) in inside for field in tree.iter() if field.tag in ("input", "select"))
        drawn = [element for element in tree.iter() if str(element.tag).endswith("svg")]
        assert all(element.get("aria-label") for element in drawn)


@pytest.mark.jax
def test_the_index_says_everything_without_a_script(site: Path) -> None:
    tree = parsed(site / "index.html")
    cards = tree.findall(".//li[@class='claim']")
    assert [card.get("data-part") for card in cards] == list("RRRBBBLGG")
    assert [card.get("data-verdict") for card in cards] == [row.verdict for row in ROWS]
    assert [row.verdict for row in ROWS] == [
        *("holds", "fails", "undecided", "being checked", "could not be checked"),
        *("holds", "not recorded here", "holds", "holds"),
    ]
    words = " ".join(cards[0].itertext())
    assert "layers: 7, as declared" in " ".join(words.split())
    assert "3,468 cases" in words
    assert "2.5 s" in words
    assert cards[0].find(".//img").get("src") == f"figures/{AUTOMATA}.png"
    assert tree.find(".//form").get("hidden") is not None
    assert [" ".join("".join(each.itertext()).split()) for each in tree.find(".//ul[@class='counts']")][:2] == [
        "holds 4",
        "fails 1",
    ]


@pytest.mark.jax
def test_an_index_is_read_again_only_while_something_is_checked(site: Path, tmp_path: Path) -> None:
    assert 'http-equiv="refresh"' in (site / "index.html").read_text()
    Site(tmp_path, ROWS[:1], Drawings(tmp_path / "store")).write()
    assert 'http-equiv="refresh"' not in (tmp_path / "index.html").read_text()


@pytest.mark.jax
def test_a_claim_has_its_evidence_its_saboteur_and_its_command(site: Path) -> None:
    text = unescape(" ".join(" ".join(parsed(site / "claims" / f"{AUTOMATA}.html").itertext()).split()))
    for said in (
        "For every automaton with",
        "What is checked here Five automata",
        "criterion threshold measured met layers 7 7 ✓ 2 of 2 d_model 24 24",
        "What is not",
        "The middle layer attends but its values are zero",
        "names a witness",
        f"vitrify check {AUTOMATA}",
        f"src/vitrify/claims/{AUTOMATA}.py",
        "Checked by this code: on CPU, 2026-11-16",
        unescape(SWAP),
        "a note",
        "LENGTH = 100",
    ):
        assert said in text, said
    text = (site / "claims" / f"{DEPTH}.html").read_text()
    assert "Recorded, not checked by this run: measured on one NVIDIA H200" in text
    assert f"vitrify check {DEPTH} --scale large" in text
    assert "<oops>" not in (site / "claims" / "state_bits_bound_recall_and_copying.html").read_text()
    failed = site / "claims" / "parity_takes_a_diagonal_recurrence_a_negative_eigenvalue.html"
    assert "Witness" in [each.text for each in parsed(failed).iter("h3")]


@pytest.mark.jax
def test_pages_do_not_depend_on_when_they_are_written(site: Path) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in site.rglob("*") if path.is_file()}
    (site / "claims" / "old.html").write_text("a claim that is no more")
    Site(site, of_every_kind(), Drawings(site / "store" / "figures")).write()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in site.rglob("*") if path.is_file()} == before


def test_an_index_of_all_claims_is_light() -> None:
    """Everything that it loads: half of a megabyte of text and styles; pictures are 15 kB at most, see the figures."""
    rows = [live(headline.name) for headline in sorted(HEADLINES.values(), key=position)]
    out = Site(Path(), rows, Drawings(Path()))
    cards = [out._card(row) for row in rows]
    part = {"key": "R", "title": "Represent", "about": "", "cards": cards}
    text = page("index.html.j2", "atlas", parts=[part], verdicts=[], origins={}, total=len(rows), refresh=None)
    styles = sum(path.stat().st_size for path in STATIC.iterdir())
    assert len(rows) > 70
    assert len(text.encode()) + styles + 12_000 * len(rows) < 2_000_000


def test_the_frame_serves_an_app_too() -> None:
    text = page("maps.html.j2", "maps", "/", LIVE, survey=survey({}), architectures=architectures({}))
    assert '<a href="/glass">Glass box</a>' in text
    assert '<a href="/maps.html" aria-current="page">Maps</a>' in text


# Maps -----------------------------------------------------------------------------------------------------------------


def test_cells_of_the_survey_lead_to_their_claims_and_say_when_one_does_not_hold() -> None:
    rows = {row.name: row for row in (live(AUTOMATA, verdict="fails"), live(MAP))}
    lines = {line["model"]: {cell["problem"]: cell for cell in line["cells"]} for line in survey(rows)["lines"]}
    assert len(lines) == 14
    assert all(len(cells) == 8 for cells in lines.values())
    (no,) = lines["hard attention, ties to one side"]["PARITY"]["answers"]
    assert (no["sign"], no["claim"]["id"], no["claim"]["address"]) == ("no", "B6", None)
    (conditional,) = lines["softmax, O(log n) bits"]["word problem of S5"]["answers"]
    assert (conditional["sign"], conditional["unless"]) == ("undecided", "TC⁰ = NC¹")
    one, each = lines["softmax, real numbers, constant margin"]["PARITY"]["answers"]
    assert [(part["scope"], part["verdict"]) for part in (one, each)] == [("one net", "no"), ("each length", "yes")]
    assert lines["softmax, real numbers"]["halting"]["answers"][0]["verdict"] == "open"
    broken = {row.name: row for row in (live(LOOPED, verdict="fails"), live(MAP))}
    shaken = [[cell["shaken"] for cell in line["cells"]] for line in survey(broken)["lines"]]
    assert any(map(any, shaken))
    assert not any(any(cell["shaken"] for cell in line["cells"]) for line in survey({MAP: live(MAP)})["lines"])


def test_a_cell_that_does_not_agree_with_its_theorem_is_marked() -> None:
    shown = {
        "architectures": ["LSTM", "reflections"],
        "tasks": ["parity", "sorting"],
        "accuracy": [[[[1.0, 0.5], [0.9, 0.6], [1.0, 0.7]]] * 2, [[[1.0, 1.0], [0.9, 1.0], [1.0, 0.99]]] * 2],
        "beyond": [True, False],
        "predicted": [[[True, "R24"], [False, "B5"]], [[False, "B7"], None]],
        "parameters": {"LSTM": 1000, "reflections": 2000},
        "budget": "5 steps",
        "seeds": 3,
        "lengths": [[8, 16], [8, 16]],
    }
    row = live(TABLE, parts={"the table": part(1, figure=shown)})
    found = architectures({TABLE: row, AUTOMATA: live(AUTOMATA)})
    cells = [[cell["verdict"] for cell in line["cells"]] for line in found["lines"]]
    assert cells == [["allowed, not found", "found against a theorem"], ["found against a theorem", "no theorem"]]
    first = found["lines"][0]["cells"][0]
    assert [size["middle"] for size in first["accuracy"]] == ["1.00", "0.60"]
    assert first["accuracy"][1]["range"] == "0.50 to 0.70"
    assert (first["judged"], first["sign"]) == (1, "differs")
    text = page("maps.html.j2", "maps", survey=survey({}), architectures=found)
    assert text.count('class="against"') == 2
    assert text.count('class="differs"') == 1


def test_cells_follow_from_architectures_that_are_included() -> None:
    assert prediction("positive", "brackets") == prediction("signed", "brackets") == (True, "R24")
    assert prediction("signed", "modular") == (False, "R24")
    assert prediction("LSTM", "sorting") is None


# Colours --------------------------------------------------------------------------------------------------------------

PAIRS = [
    *((ink, paper) for ink in ("ink", "muted", "accent") for paper in ("paper", "card", "sunk")),
    *((word, f"{word}-soft") for word in ("accent", "holds", "fails", "undecided", "pending")),
    ("on-accent", "accent"),
    ("ink", "undecided-soft"),
    ("ink", "fails-soft"),
    ("muted", "undecided-soft"),
    ("muted", "fails-soft"),
    ("holds", "card"),
    ("holds", "paper"),
    ("fails", "undecided-soft"),
]


def themes() -> dict[str, dict[str, str]]:
    """The colours of each theme: light, dark by choice, dark by the system."""
    text = (STATIC / "site.css").read_text()
    blocks = re.findall(r"^\s*(:root\S*) \{([^}]*)\}", text.split("@media print")[0], re.MULTILINE)
    return {name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for name, block in blocks}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_the_guidelines_do() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("theme", themes())
def test_text_can_be_read_in_every_theme(theme: str) -> None:
    colours = themes()[theme]
    for text, paper in PAIRS:
        assert contrast(colours[text], colours[paper]) >= 4.5, (text, paper)
    for edge in ("edge", "accent"):  # borders of fields, and focus
        assert contrast(colours[edge], colours["card"]) >= 3
        assert contrast(colours[edge], colours["paper"]) >= 3


def test_dark_is_the_same_by_choice_and_by_the_system() -> None:
    found = themes()
    assert len(found) == 3
    assert found[':root[data-theme="dark"]'] == found[":root:not([data-theme])"]
    assert set(found[":root"]) == set(found[":root:not([data-theme])"])
