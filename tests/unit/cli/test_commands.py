"""The commands, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases import each
from command_line import vitrify
from vitrify import __version__
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import symmetric_group
from vitrify.spec.geometry.maxout import Maxout
from vitrify.spec.geometry.scene import Scene
from vitrify.spec.geometry.scene_images import draw_images
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.hierarchy import Hierarchy
from vitrify.spec.languages.word_patterns import WordPatterns
from vitrify.spec.ngrams.model import NGramModel

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


def answer(*words: object, given: str | None = None) -> Any:
    done = vitrify(*words, "--json", given=given)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets") / "weather"
    assert vitrify("build", EXAMPLES / "weather.arpa", "-o", folder, "--max-length", 12).returncode == 0
    return folder


@pytest.fixture(scope="module")
def abba(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets") / "abba"
    assert (
        vitrify("build", EXAMPLES / "abba.regex", "-o", folder, "--attention", "hard", "--max-length", 20).returncode
        == 0
    )
    return folder


def test_build_reports_the_sizes_as_json(tmp_path: Path) -> None:
    report = answer("build", EXAMPLES / "weather.arpa", "-o", tmp_path / "net", "--construction", "layers")
    assert report["sizes"]["heads_per_layer"] == [1, 1]
    assert report["about"]["listed contexts"] == 15


def test_building_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert vitrify("build", EXAMPLES / "weather.arpa", "-o", tmp_path / name).returncode == 0
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["README.md", "config.json", "labels.json", "model.safetensors", "spec.arpa"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_run_gives_the_next_token_probabilities_of_the_model(weather: Path) -> None:
    model = NGramModel.read(EXAMPLES / "weather.arpa")
    found = answer("run", weather, "sun", "rain")
    assert (found["tokens"], found["kind"]) == (["sun", "rain"], "lm")
    expected = dict(zip(model.predicted, np.exp(model.next_log_probs([["sun", "rain"]])[0]), strict=True))
    assert found["next"] == pytest.approx(expected, abs=1e-12)
    assert found["log_prob"] == pytest.approx(model.log_prob_of(["sun", "rain"], end=False), abs=1e-12)


def test_run_all_answers_at_every_position(weather: Path) -> None:
    model = NGramModel.read(EXAMPLES / "weather.arpa")
    found = answer("run", weather, "sun rain", "--all")  # one argument with a blank is two tokens
    assert len(found["next"]) == 3
    for place, row in enumerate(found["next"]):
        history = ["sun", "rain"][:place]
        assert row["rain"] == pytest.approx(np.exp(model.log_prob(history, "rain")), abs=1e-12)


def test_run_top_keeps_the_most_probable(weather: Path) -> None:
    found = answer("run", weather, "sun", "rain", "--top", "2")
    assert list(found["next"]) == ["rain", "</s>"]


def test_run_on_nothing_answers_before_the_first_token(weather: Path, abba: Path) -> None:
    assert sum(answer("run", weather)["next"].values()) == pytest.approx(1.0)
    assert answer("run", abba) == {"tokens": [], "kind": "recognizer", "states": ["0"], "accept": True}


def test_run_gives_the_states_of_an_automaton(abba: Path) -> None:
    machine = Automaton.from_regex("(ab|ba)*")
    found = answer("run", abba, *"abbab")
    assert tuple(found["states"]) == machine.run("abbab")
    assert found["accept"] is False
    assert answer("run", abba, *"abba")["accept"] is True


def test_stdin_gives_one_json_line_for_each_line_in_order(abba: Path) -> None:
    done = vitrify("run", abba, "--stdin", given="a b\n\nb b a\na\n" * 200)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["tokens"] for line in lines] == [["a", "b"], [], ["b", "b", "a"], ["a"]] * 200
    assert [line["accept"] for line in lines] == [True, True, False, False] * 200


def test_a_recursive_grammar_is_cut_on_request(tmp_path: Path) -> None:
    (tmp_path / "g.cfg").write_text("S -> 'a' S | 'b'\n")
    assert vitrify("build", tmp_path / "g.cfg", "-o", tmp_path / "net", "--depth", 3).returncode == 0
    found = answer("run", tmp_path / "net", "a", "--all")
    assert (found["kind"], found["next"]) == ("next", [["a", "b"], ["a", "b"]])
    assert answer("run", tmp_path / "net", "a", "a")["next"] == ["b"]
    assert answer("certify", tmp_path / "net")["verdict"] == "holds"
    refused = vitrify("build", EXAMPLES / "abba.regex", "-o", tmp_path / "other", "--depth", 3)
    assert refused.returncode == 2
    assert "only grammars can be cut at a depth" in refused.stderr


def test_trace_shows_heads_and_spaces(weather: Path) -> None:
    text = vitrify("run", weather, "sun", "rain", "--trace").stdout
    assert "shift by 1: slot 1" in text
    assert "slot 1: <s>  <s>  sun" in text


def test_certify_holds_and_says_on_what(abba: Path) -> None:
    found = answer("certify", abba, "--max-length", "8", "--samples", "70")
    assert found["verdict"] == "holds"
    assert found["methods"] == ["sampled", "proved"]
    assert [(link["name"], link["scope"]) for link in found["links"]] == [("weights", "to T"), ("spec", "to T")]
    assert found["proof"]["holds"]
    assert found["proof"]["max_length"] > 0
    short, *_, random = found["domains"]
    assert short == {"kind": "words", "method": "sampled", "count": 511, "shortest": 0, "longest": 8}
    assert (random["kind"], random["count"]) == ("random words", 70)
    assert "witness" not in found
    assert found["cases"] > 511


def test_certify_attacks(abba: Path) -> None:
    found = answer("certify", abba, "--max-length", "4", "--samples", "2", "--attack", "90", "--no-write")
    assert found["verdict"] == "holds"
    measured = {each["name"]: each["measured"] for each in found["quantities"]}
    assert measured["smallest margin that the attack found"] >= found["proof"]["margin"] * (1 - 1e-9)
    assert measured["words tried by the attack"] == 90


def test_certify_decides_short_words_in_real_arithmetic(abba: Path) -> None:
    found = answer("certify", abba, "--max-length", "4", "--samples", "2", "--reals")
    assert found["verdict"] == "holds"
    assert "sampled in reals" in found["methods"]
    exact = {"kind": "words", "method": "sampled", "count": 31, "shortest": 0, "longest": 4, "arithmetic": "reals"}
    assert found["domains"][-1] == exact
    assert {"name": "bits that decide every answer", "measured": 53} in found["quantities"]


def test_certify_finds_a_changed_weight_and_names_a_witness(weather: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from vitrify.net.folder import load, save

    weights = load(weather)
    array = weights.arrays["blocks.0.mlp.W_out"].copy()
    array[3] = 0
    broken = tmp_path / "broken"
    save(replace(weights.with_array("blocks.0.mlp.W_out", array)), broken, NGramModel.read(EXAMPLES / "weather.arpa"))
    done = vitrify("certify", broken, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["verdict"] == "fails"
    witness = found["witness"]
    model = NGramModel.read(EXAMPLES / "weather.arpa")
    truth = np.exp(model.log_prob(witness["history"], witness["next"]))
    assert witness["expected"] == pytest.approx(truth, abs=1e-12)
    assert abs(witness["actual"] - truth) > 1e-9


@pytest.mark.long
def test_certify_judges_edited_weights_that_run_refuses(abba: Path, tmp_path: Path) -> None:
    import shutil

    edited = shutil.copytree(abba, tmp_path / "edited")
    data = bytearray((edited / "model.safetensors").read_bytes())
    data[-9] ^= 0x40
    (edited / "model.safetensors").write_bytes(bytes(data))
    refused = vitrify("run", edited, "a")
    assert refused.returncode == 2
    assert "model.safetensors changed" in refused.stderr
    assert vitrify("certify", edited, "--json").returncode in (0, 1)


@pytest.mark.slow
def test_mutations_are_counted(abba: Path) -> None:
    found = answer("certify", abba, "--max-length", "6", "--mutants", "20")
    assert found["mutation_test"]["tried"] == 20
    assert found["mutation_test"]["rate"] >= 0.95


def test_info_has_sizes_and_labels(abba: Path) -> None:
    found = answer("info", abba)
    assert found["sizes"]["layers"] == 5
    assert {head["name"] for head in found["labels"]["heads"]} >= {"shift by 1: older map 0"}
    assert "residual stream" in vitrify("info", abba).stdout


@pytest.mark.long
def test_list_has_claims_with_a_status_and_shapes_with_a_method() -> None:
    found = answer("list")
    claims = {entry["name"]: entry for entry in found["claims"]}
    assert all(set(entry) >= {"name", "id", "standing", "method"} for entry in claims.values())
    assert claims["any_automaton_runs_in_log_depth"]["method"] == "proved"
    assert claims["the_sqrt_position_code_needs_a_cubic_temperature"]["method"] is None
    links = {entry["construction"]: entry["links"] for entry in found["constructions"]}
    assert links["log-depth"] == {"weights": "to T", "spec": "to T"}
    assert set(links["elman"].values()) == {"every length"}
    assert set(links["features"].values()) == {"sampled"}
    lines = vitrify("list").stdout.splitlines()
    assert next(line for line in lines if "log-depth " in line).split()[:6] == [
        *["to", "T", "to", "T", "log-depth", "Automaton"]
    ]


def test_show_says_how_a_shape_is_certified() -> None:
    assert answer("show", "heads")["links"] == {"weights": "to T", "spec": "every length"}
    assert answer("show", "memory")["unproved"] == "may have no margin"
    shown = vitrify("show", "elman").stdout
    assert "proved for every word of every length" in shown
    assert "ReLU" in shown
    assert "tested on samples" in vitrify("show", "copying").stdout
    assert "sampled: besides the check" in vitrify("show", "any_continuous_function").stdout
    assert "exhaustive: besides the check" in vitrify("show", "a_pcfg_runs_as_its_exact").stdout


@pytest.mark.long
def test_show_takes_a_unique_beginning() -> None:
    found = answer("show", "the_sqrt")
    assert found["id"] == "R1"
    assert all(found[part] for part in ("statement", "why", "checked", "source", "saboteur"))


def test_check_runs_a_claim_and_its_saboteur() -> None:
    (found,) = answer("check", "the_sqrt")
    assert found["evidence"]["verdict"] == "holds"
    assert found["saboteur_rejected"] is True
    assert "1 of 1 hold" in vitrify("check", "the_sqrt").stdout


@pytest.mark.long
@each(
    ("words", "said"),
    [
        (["check"], "name the claims to check, or say --all"),
        (["check", "nonsense"], "no claim has the name, id or words 'nonsense'"),
        (["check", "one_head"], "claims match 'one_head'"),
        (["show", "nonsense"], "no claim has the name, id or words 'nonsense'"),
        (["frobnicate"], "No such command"),
        (["build", "x.arpa"], "Missing option"),
        (
            ["build", str(EXAMPLES / "weather.arpa"), "-o", "y", "--attention", "warm"],
            "--attention (kind of attention) must be one of softmax, sparsemax, hard, not warm",
        ),
        (
            ["build", str(EXAMPLES / "weather.arpa"), "-o", "y", "--max-length", "0"],
            "--max-length (longest input, in tokens) must be a whole number of at least 1, not 0",
        ),
    ],
)
def test_misuse_is_one_message_and_exit_code_2(words: list[str], said: str) -> None:
    done = vitrify(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def awoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets") / "awoke"
    assert vitrify("build", EXAMPLES / "awoke.patterns", "-o", folder).returncode == 0
    return folder


@pytest.mark.long
def test_word_patterns_build_run_certify(awoke: Path) -> None:
    spec = WordPatterns.read(EXAMPLES / "awoke.patterns")
    assert WordPatterns.read(awoke / "spec.patterns") == spec
    assert answer("run", awoke, "Ann", "awoke") == {"tokens": ["Ann", "awoke"], "kind": "next", "next": ["early", "at"]}
    words = ["Bob", "awoke", "early"]
    found = answer("run", awoke, *words, "--all")["next"]
    assert [set(legal) for legal in found] == [spec.next_words(words[:n]) for n in range(4)]
    assert found[-1] == ["</s>"]
    done = vitrify("run", awoke, "--stdin", given="Ann\n\nCarol went\n")
    assert [json.loads(line)["next"] for line in done.stdout.splitlines()] == [
        ["awoke", "was", "went"],
        ["Ann", "Bob", "Carol"],
        ["back"],
    ]
    assert vitrify("run", awoke, "Ann", "Ann", "Ann").stdout == "after Ann Ann Ann: nothing\n"
    assert "classes: [<s>]  [WHO]" in vitrify("run", awoke, "Ann", "--trace").stdout
    certificate = answer("certify", awoke, "--mutants", "5")
    assert certificate["verdict"] == "holds"
    every = {"kind": "prefixes of sentences", "method": "exhaustive", "count": 574, "shortest": 0, "longest": 14}
    assert certificate["domains"][0] == every
    few = every | {"method": "sampled", "count": 4, "longest": 1}
    assert answer("certify", awoke, "--max-length", "1")["domains"][0] == few
    assert "all 4 prefixes of sentences of length 0 to 1" in vitrify("certify", awoke, "--max-length", "1").stdout


def test_a_window_too_short_is_built_and_found_out(tmp_path: Path) -> None:
    report = answer("build", EXAMPLES / "awoke.patterns", "-o", tmp_path / "net", "--window", "3")
    assert "allows too much" in report["about"]["exact"]
    done = vitrify("certify", tmp_path / "net", "--json")
    assert done.returncode == 1
    witness = json.loads(done.stdout)["witness"]
    assert witness["missing"] == []
    assert witness["too many"]


def test_a_register_builds_runs_traces_and_certifies(tmp_path: Path) -> None:
    vitrify("build", EXAMPLES / "awoke.patterns", "-o", tmp_path / "register", "--construction", "register")
    found = answer("run", tmp_path / "register", "Bob was too cold", "--trace")
    assert found["next"] == ["for"]
    assert '2 back: []  []  []  [WHO]  ["was"]' in found["trace"]
    certified = answer("certify", tmp_path / "register", "--mutants", "20")
    assert certified["verdict"] == "holds"
    assert certified["mutation_test"]["rate"] >= 0.9
    shown = vitrify("info", tmp_path / "register").stdout
    assert "recurrence 0" in shown
    assert "least beta" not in shown


@pytest.mark.long
def test_numbers_negative_ones_too_on_the_command_line(tmp_path: Path) -> None:
    report = answer("build", EXAMPLES / "zigzag.maxout.json", "-o", tmp_path / "net", "--tolerance", "1e-4")
    assert report["about"]["error bound"] <= 1e-4
    assert report["about"]["maxout parameters"] == 23
    spec = Maxout.read(EXAMPLES / "zigzag.maxout.json")
    for word in ("-0.25", "-.5", "-1", "-2.5e-1", "0.75"):
        found = answer("run", tmp_path / "net", word)
        assert found["kind"] == "values"
        assert found["values"]["y1"] == pytest.approx(spec(np.array([[float(word)]]))[0, 0], abs=1e-4)
    given = "0.25\n-0.75\n"
    lines = vitrify("run", tmp_path / "net", "--stdin", given=given).stdout.splitlines()
    assert [json.loads(line)["values"]["y1"] for line in lines] == pytest.approx([-0.25, 0.75], abs=1e-4)
    assert "maximum: unit 1.1" in vitrify("run", tmp_path / "net", "-0.25", "--trace").stdout
    evidence = answer("certify", tmp_path / "net", "--mutants", 20)
    assert evidence["verdict"] == "holds"
    assert evidence["mutation_test"]["rate"] == 1.0


def test_analyze_reports_on_an_automaton() -> None:
    report = answer("analyze", EXAMPLES / "abba.regex")
    assert report["star_free"] is True
    assert [level["group"] for level in report["levels"]] == ["trivial"] * 3
    assert {depth["construction"]: depth["attention_layers"] for depth in report["depths"]} == {
        "commutative": None,
        "gridworld": None,
        "cascade": 3,
        "log-depth": "⌈log₂ T⌉",
    }
    shown = vitrify("analyze", EXAMPLES / "parity.automaton.json")
    assert shown.returncode == 0
    assert "star-free" in shown.stdout
    assert "Z2" in shown.stdout


def test_analyze_says_whether_a_language_model_is_tight() -> None:
    report = answer("analyze", EXAMPLES / "weather.arpa")
    assert (report["tight"], report["fraction"], report["trap"], report["steps"]) == (True, "1", None, None)
    report = answer("analyze", EXAMPLES / "marked_palindromes.ptm.toml", "--steps", 3)
    assert (report["tight"], report["fraction"], report["rest"], report["steps"]) == (None, "1/4", 0.75, 3)
    shown = vitrify("analyze", EXAMPLES / "weather.pfsa.json")
    assert shown.returncode == 0
    assert "tight" in shown.stdout
    assert "yes" in shown.stdout
    assert vitrify("analyze", EXAMPLES / "weather.pfsa.json", "--steps", 10**9).returncode == 2


@pytest.mark.parametrize(("name", "kind"), [("phrases.pcfg", "Grammar"), ("brackets.dyck", "Dyck")])
def test_other_specs_can_not_be_analyzed(name: str, kind: str) -> None:
    done = vitrify("analyze", EXAMPLES / name)
    assert done.returncode == 2
    assert not done.stdout
    assert f"got a spec of type {kind}" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_cascades_are_built_or_refused_by_the_command_line(tmp_path: Path) -> None:
    net = tmp_path / "net"
    report = answer("build", EXAMPLES / "abba.regex", "-o", net, "--construction", "cascade", "--max-length", 20)
    assert report["sizes"]["heads_per_layer"] == [1, 1, 1]
    assert answer("run", net, "a", "b", "b", "a")["accept"] is True
    assert vitrify("certify", net, "--max-length", 6).returncode == 0
    symmetric_group(5).write(tmp_path / "s5.automaton.json")
    done = vitrify("build", tmp_path / "s5.automaton.json", "-o", tmp_path / "s5", "--construction", "cascade")
    assert done.returncode == 2
    assert "has the group S5 of 120 permutations" in done.stderr
    assert not (tmp_path / "s5").exists()
    done = vitrify("build", EXAMPLES / "abba.regex", "-o", tmp_path / "grid", "--construction", "gridworld")
    assert done.returncode == 2
    assert "this automaton is not one" in done.stderr


@pytest.mark.long
def test_scenes_are_built_run_and_certified(tmp_path: Path) -> None:
    scene = Scene.read(EXAMPLES / "faces.scene.toml")
    for name in ("one", "two"):
        assert vitrify("build", EXAMPLES / "faces.scene.toml", "-o", tmp_path / name).returncode == 0
    for written in (tmp_path / "one").iterdir():
        assert written.read_bytes() == (tmp_path / "two" / written.name).read_bytes(), written.name
    images, labels = draw_images(scene, 2, seed=0)
    np.save(tmp_path / "x.npy", images[0])
    np.savetxt(tmp_path / "x.csv", images[1], delimiter=",")
    for image, label, file in zip(images, labels, ("x.npy", "x.csv"), strict=True):
        found = answer("run", tmp_path / "one", "--input", tmp_path / file)
        assert (found["class"], found["kind"], found["logits"][label]) == (label, "class", 1.0)
        places = scene.places(image)
        wanted = {name: [list(place) for place in places[name]] for name in scene.names if places[name]}
        assert found["detections"] == wanted
    said = vitrify("run", tmp_path / "one", "--input", tmp_path / "x.npy").stdout
    assert said.startswith("face\n  head: row ")
    report = answer("certify", tmp_path / "one", "--mutants", 20)
    assert report["verdict"] == "holds"
    assert report["mutation_test"]["rate"] == 1.0
    measured = {each["name"]: each["measured"] for each in report["quantities"]}
    assert measured["certified radius, smallest of 64 images"] > 0.05
    assert "templates" in vitrify("info", tmp_path / "one").stdout


def test_hierarchies_are_classified_token_by_token(tmp_path: Path) -> None:
    assert (
        vitrify("build", EXAMPLES / "hierarchy.pcfg", "-o", tmp_path / "net", "--construction", "cnn").returncode == 0
    )
    tree = Hierarchy.of(Grammar.read(EXAMPLES / "hierarchy.pcfg"))
    rng = np.random.default_rng(0)
    strings = [tree.draw(rng) for _ in range(3)] + [("a",) * tree.length]
    wanted = [tree.classify(words) or "(none)" for words in strings]
    assert wanted[-1] == "(none)"
    assert answer("run", tmp_path / "net", *strings[0])["class"] == wanted[0]
    done = vitrify("run", tmp_path / "net", "--stdin", given="".join(" ".join(words) + "\n" for words in strings))
    assert [json.loads(line)["class"] for line in done.stdout.splitlines()] == wanted
    assert answer("certify", tmp_path / "net")["verdict"] == "holds"


def test_the_version_is_that_of_the_package() -> None:
    done = vitrify("--version")
    assert (done.returncode, done.stdout) == (0, f"vitrify {__version__}\n")


def test_show_finds_a_claim_by_id_and_by_words() -> None:
    by_id, by_words = (answer("show", *words.split())["name"] for words in ("R14", "log automaton depth"))
    assert by_id == by_words == "any_automaton_runs_in_log_depth"
