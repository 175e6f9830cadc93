"""The glass box over the network: specs in, nets built, looked into, broken and mended; what is odd is refused."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loops import awaited
from malformed import malformed
from serving import Visitor, serving

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")

from vitrify.errors import VitrifyError  # noqa: E402
from vitrify.report.frame import page  # noqa: E402
from vitrify.spec import read_spec  # noqa: E402
from vitrify.web.examples import examples  # noqa: E402

UPLOAD = 1 << 20
SEES = "S -> N V | N V N\nN -> 'ann' | 'bob'\nV -> 'sees' | 'hears'\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the app may write."""
    return tmp_path_factory.mktemp("app")


@pytest.fixture(scope="module")
def app(home: Path) -> Iterator[str]:
    import tempfile

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(home))
        with serving(workers=1, tracers=1, waiting=4, upload=UPLOAD, own=3) as address:
            yield address
    assert not list(home.iterdir())  # nothing is left behind


@pytest.fixture
def visitor(app: str) -> Iterator[Visitor]:
    with Visitor(app) as one:
        yield one


@pytest.mark.long
def test_a_net_is_built_looked_into_broken_and_mended(visitor: Visitor) -> None:
    spec = visitor.give("ambiguous.cfg", examples()["ambiguous.cfg"].read_bytes()).json()
    assert {"auto", "shapes", "spans"} <= {one["construction"] for one in spec["constructions"]}
    net = visitor.build("ambiguous.cfg", examples()["ambiguous.cfg"].read_bytes(), construction="shapes")
    assert net["sizes"]["heads"] == 9
    assert "sees" in net["inputs"]
    key = net["net"]
    assert visitor.check(key)["verdict"] == "holds"
    found = visitor.run(key, ["bob", "sees"], stop=2)
    assert found["answer"]["right"] == [True, True, True]
    assert found["stop"]["kind"] == "units"

    random = visitor.http.post(f"/api/glass/nets/{key}/changes", json={"seed": 0}).json()
    assert len(random["changes"]) == 1
    listed = visitor.http.get(f"/api/glass/nets/{key}/entries", params={"array": "unembed.b_U"}).json()["entries"]
    index, words, value = listed[0]
    change = {"array": "unembed.b_U", "index": index, "value": value + 100}
    said = visitor.http.post(f"/api/glass/nets/{key}/changes", json=change).json()["changes"]
    assert len(said) == 2
    assert words in said[1]
    broken = visitor.check(key)
    assert broken["verdict"] == "fails"
    assert broken["witness"]
    assert any("prefixes of sentences" in text for text in broken["words"]["domains"])
    assert False in visitor.run(key, ["bob", "sees"])["answer"]["right"]
    visitor.http.delete(f"/api/glass/nets/{key}/changes")
    assert visitor.run(key, ["bob", "sees"])["answer"]["right"] == [True, True, True]


def test_options_are_those_of_the_command_line_and_so_are_refusals(visitor: Visitor) -> None:
    data = examples()["weather.arpa"].read_bytes()
    net = visitor.build(
        "weather.arpa", data, construction="heads", max_length=8, attention="hard", positions="quadratic"
    )
    assert net["most"] == 8
    assert "hard" in net["name"]
    spec = visitor.give("weather.arpa", data).json()["spec"]

    def refusal(construction: str | None, **options: Any) -> str:
        job = visitor.http.post(
            "/api/glass/nets", json={"spec": spec, "construction": construction, "options": options}
        ).json()["job"]
        event, said = visitor.wait(job)
        assert event == "failed"
        return str(said["error"])

    assert (
        refusal("cascade")
        == "a spec of type NGramModel is built by the constructions heads, layers, single, not 'cascade'"
    )
    assert refusal("heads", window=3) == (
        "the construction 'heads' has no such choice: leave --window out; it has --attention, --max-length, --positions"
    )
    assert refusal(None, depth=2).startswith("only grammars can be cut at a depth")
    assert refusal(None, attention="odd") == (
        '--attention (kind of attention) must be one of softmax, sparsemax, hard, not "odd"'
    )
    for options in ({"max_length": 1 << 17}, {"seed": 1 << 40}, {"attention": "x" * 65}, {"window": [3]}):
        assert visitor.http.post("/api/glass/nets", json={"spec": spec, "options": options}).status_code == 422
    assert visitor.http.post("/api/glass/nets", json={"spec": spec, "oops": 1}).status_code == 422
    run = visitor.http.post(f"/api/glass/nets/{net['net']}/run", json={"words": ["fog"]})
    assert run.status_code == 422
    assert run.json()["error"] == "this network does not read 'fog'; it reads: rain snow sun"


@pytest.mark.long
def test_what_is_on_the_shelf_is_its_owners_alone_and_old_things_fall_off(app: str, visitor: Visitor) -> None:
    data = examples()["door.ltl"].read_bytes()
    first = visitor.build("door.ltl", data)["net"]
    with Visitor(app) as other:
        assert other.http.post(f"/api/glass/nets/{first}/run", json={"words": []}).status_code == 404
        assert other.http.post(f"/api/glass/nets/{first}/check").status_code == 404
    others = [visitor.build("door.ltl", data)["net"] for _ in range(3)]
    assert visitor.http.post(f"/api/glass/nets/{first}/run", json={"words": []}).status_code == 404
    assert visitor.run(others[0], ["open"])["answer"]["right"] == [None, True]


def test_uploads_are_measured_and_their_names_only_shown(visitor: Visitor, home: Path) -> None:
    assert visitor.give("big.regex", b"a" * (UPLOAD + 1)).status_code == 413
    pieces = (b"a" * 4096 for _ in range(2 * UPLOAD // 4096))
    sent = visitor.http.post("/api/glass/specs", params={"name": "big.regex"}, content=pieces)
    assert sent.status_code == 413
    (outside := home.parent / "outside.regex").write_text("(ab)*", encoding="utf-8")
    for name in ("../../outside.regex", str(outside), "..\\outside.regex"):
        answer = visitor.give(name, b"(ab")
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("outside.regex:1: ")
    assert outside.read_text(encoding="utf-8") == "(ab)*"
    assert visitor.http.get("/api/glass/examples/..%2f..%2fpyproject.toml").status_code == 404


def told_by_the_command_line(name: str) -> str | None:
    """What the command line says of a file, if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read_spec(Path(name))
        except VitrifyError as error:
            return str(error)
    return None


def upload_malformed(visitor: Visitor, folder: Path, count: int, seed: int, patch: pytest.MonkeyPatch) -> int:
    """Give the app files that are almost specs; each is refused in the words of the command line, or is one."""
    patch.chdir(folder)
    refused = 0
    for name, data in malformed(count, seed):
        (folder / name).write_bytes(data)
        answer, said = visitor.give(name, data), told_by_the_command_line(name)
        if said is None:
            assert answer.status_code == 200, (name, answer.text)
        else:
            assert answer.status_code == 422, (name, answer.text)
            assert answer.json()["error"] == said
            refused += 1
    return refused


@pytest.mark.long
def test_malformed_uploads_are_refused_in_the_words_of_the_command_line(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert upload_malformed(visitor, tmp_path, 50, 7, monkeypatch) > 35
    assert visitor.give("odd.pdf", b"").json()["error"] == told_by_the_command_line("odd.pdf")


@pytest.mark.slow
def test_a_thousand_malformed_uploads_leave_the_app_as_it_was(
    app: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    with Visitor(app) as visitor:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert upload_malformed(visitor, tmp_path, 1000, 11, monkeypatch) > 800
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 200 << 10  # kilobytes: this process, which parses every file too
        (folder,) = home.iterdir()
        assert len(list(folder.iterdir())) <= 64 + 64
        assert visitor.check(visitor.build("abba.regex", b"(ab|ba)*\n", max_length=8)["net"])["verdict"] == "holds"


@pytest.mark.long
def test_a_job_is_withdrawn_and_a_full_queue_says_so(visitor: Visitor) -> None:
    data = examples()["weather.arpa"].read_bytes()
    key = visitor.build("weather.arpa", data)["net"]  # checking it takes seconds
    jobs = []
    for _ in range(8):
        answer = visitor.http.post(f"/api/glass/nets/{key}/check")
        if answer.status_code == 429:
            break
        jobs.append(answer.json()["job"])
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert "queue is full" in answer.json()["error"]
    assert len(jobs) == 5  # one works, four wait
    start = time.perf_counter()
    assert visitor.run(key, ["sun"])["answer"]["right"] == [True, True]  # looking does not wait for checking
    for job in jobs:
        visitor.http.delete(f"/api/glass/jobs/{job}")
    assert [visitor.wait(job) for job in jobs] == [("failed", {"error": "stopped"})] * 5
    assert time.perf_counter() - start < 3
    assert visitor.give("a.regex", "a").status_code == 200


@pytest.mark.parametrize(("file", "content"), [("config.*", "[" * 50_000), ("labels.*", "{}"), ("spec.*", "{}")])
def test_a_network_that_somebody_changed_on_disk_is_refused_in_a_sentence(
    visitor: Visitor, home: Path, file: str, content: str
) -> None:
    key = visitor.build("abba.regex", b"(ab|ba)*\n", max_length=8)["net"]
    newest = max(home.glob("*/*/config.json"), key=lambda path: path.stat().st_mtime_ns).parent
    (path,) = newest.glob(file)
    path.write_text(content)
    about = f"/api/glass/nets/{key}"
    answers = [
        visitor.http.post(f"{about}/run", json={"words": ["a"]}),
        visitor.http.post(f"{about}/write", json={"words": ["a"]}),
        visitor.http.post(f"{about}/changes", json={"seed": 1}),
        visitor.http.get(f"{about}/suggestion"),
        visitor.http.get(f"{about}/entries", params={"array": "embed.W_E"}),
    ]
    errors = [answer.json()["error"] for answer in answers]
    event, found = visitor.wait(visitor.http.post(f"{about}/check").json()["job"])
    assert {answer.status_code for answer in answers} == {422}
    assert event == "failed"
    for error in (*errors, found["error"]):
        assert path.name in error
        assert len(error.splitlines()) == 1


@pytest.mark.slow
def test_fifty_visitors_at_once_are_all_served_in_the_end(app: str) -> None:
    failures: list[str] = []

    def visit(number: int) -> None:
        try:
            with Visitor(app) as visitor:
                words, busy = ["1"] * (number % 5), 0
                while True:
                    given = visitor.give("parity.automaton.json", examples()["parity.automaton.json"].read_bytes())
                    if given.status_code == 200:
                        options = {"max_length": 8}
                        question = {"spec": given.json()["spec"], "construction": "commutative", "options": options}
                        answer = visitor.http.post("/api/glass/nets", json=question)
                        if answer.status_code == 200:
                            break
                        given = answer
                    assert given.status_code == 429, given.text
                    busy += 1
                    time.sleep(0.2 + 0.01 * number)
                event, net = visitor.wait(answer.json()["job"])
                assert event == "done"
                for stop in range(3):
                    assert False not in visitor.run(net["net"], words, stop)["answer"]["right"]
        except Exception as error:
            failures.append(f"{number}: {error!r}")

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    assert not failures


def test_the_atlas_is_shown_from_its_folder_and_missed_politely(tmp_path: Path, visitor: Visitor) -> None:
    missing = visitor.http.get("/", follow_redirects=True)
    assert missing.status_code == 200
    assert "vitrify atlas" in missing.text
    assert visitor.http.get("/docs").status_code == 404
    assert visitor.http.get("/openapi.json").status_code == 404
    assert visitor.http.get("/static/site.css").status_code == 200
    assert visitor.http.get("/static/live.js").headers["content-type"].startswith("text/javascript")
    assert ".arcs" in visitor.http.get("/static/live.css").text
    assert visitor.http.get("/app/making.js").headers["content-type"].startswith("text/javascript")
    (tmp_path / "atlas").mkdir()
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "atlas" / "index.html").write_text("<p>all claims</p>", encoding="utf-8")
    claim = page("base.html.j2", "atlas", "../")
    (tmp_path / "atlas" / "claim.html").write_text(claim, encoding="utf-8")
    from vitrify.web.app import application
    from vitrify.web.site import ServerSettings

    async def ask() -> list[Any]:
        transport = httpx.ASGITransport(app=application(ServerSettings(atlas=tmp_path / "atlas")))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            paths = ("/index.html", "/claim.html", "/../secret", "/%2e%2e/secret", "/none.html")
            return [await client.get(path) for path in paths]

    found, live, *others = awaited(ask())
    assert 'href="/glass"' not in claim
    assert 'href="/glass"' in live.text
    assert found.text == "<p>all claims</p>"
    assert "script-src 'self'" in found.headers["content-security-policy"]
    assert [answer.status_code for answer in others] == [404, 404, 404]
