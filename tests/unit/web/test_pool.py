"""Workers are bounded in number, time and memory, and are gone when they are stopped."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from loops import awaited

pytest.importorskip("fastapi")

from vitrify.encoding import JsonObject
from vitrify.web.pool import Full, Jobs, Pool, Progress, Refused
from vitrify.web.worker import WebQuestion

MEMORY = 3 << 29


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
def test_a_pool_stops_what_takes_too_long_or_is_withdrawn_and_goes_on(tmp_path: Path) -> None:
    """A pipe that nobody writes to is a file that is never read to its end."""
    endless, spec = tmp_path / "endless.regex", tmp_path / "spec.regex"
    os.mkfifo(endless)
    spec.write_text("(ab)*\n", encoding="utf-8")

    def read(path: Path) -> WebQuestion:
        return WebQuestion("read", {"path": str(path), "file_name": "given.regex"})

    held = np.ones(MEMORY // 16)  # half of the memory of a worker, which is not the worker's own

    async def story() -> None:
        pool = Pool(size=1, waiting=1, seconds=60, memory=MEMORY)
        await pool.warm()
        worker = pool._idle[0].process.pid
        assert (await pool.ask(read(spec)))["kind"] == "regular expression"
        assert pool._idle[0].process.pid == worker
        with pytest.raises(Refused, match=r"took more than 0\.2 seconds"):
            await pool.ask(read(endless), seconds=0.2)
        assert gone(worker)

        withdrawn = asyncio.create_task(pool.ask(read(endless)))
        waiting = asyncio.create_task(pool.ask(read(spec)))
        await asyncio.sleep(0.1)
        with pytest.raises(Full, match="try again"):
            await pool.ask(read(spec))
        assert not waiting.done()
        withdrawn.cancel()
        assert (await waiting)["kind"] == "regular expression"  # by a new worker
        with pytest.raises(asyncio.CancelledError):
            await withdrawn

        with pytest.raises(Refused, match=r"^given\.regex: the file can't be read"):
            await pool.ask(read(tmp_path / "missing.regex"))
        last = pool._idle[0].process.pid
        await pool.close()
        assert gone(last)

    awaited(story())
    assert held.all()


@pytest.mark.slow
def test_a_file_that_unpacks_to_too_much_is_refused_and_its_worker_ends(tmp_path: Path) -> None:
    bomb = tmp_path / "spec.arpa.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(40):
            file.write(bytes(10 << 20))

    async def story() -> None:
        pool = Pool(size=1, waiting=0, seconds=60, memory=5 << 27)
        with pytest.raises(Refused, match="the system refused") as refusal:
            await pool.ask(WebQuestion("read", {"path": str(bomb), "file_name": "bomb.arpa.gz"}))
        assert refusal.value.status_code == 413
        assert not pool._idle
        await pool.close()

    awaited(story())


def test_a_job_gives_its_place_back_even_if_it_is_stopped_before_it_begins() -> None:
    async def act() -> None:
        jobs = Jobs(Pool(1, 0, 1.0, MEMORY))

        async def work(progress: Progress) -> JsonObject:
            progress(("working", 1, 2))
            await asyncio.sleep(60)
            return {}

        for _ in range(2):  # there is one place
            jobs.start("a visitor", work).stop()
            await asyncio.sleep(0.01)
        job = jobs.start("a visitor", work)
        with pytest.raises(Full):
            jobs.start("another", work)
        await asyncio.sleep(0.01)
        assert job.events == [("progress", {"doing": "working", "done": 1, "total": 2})]
        assert jobs.find("another", job.key) is None
        await jobs.close()
        assert job.events[-1] == ("failed", {"error": "stopped"})

    awaited(act())


def test_a_task_is_given_the_arguments_that_it_takes(tmp_path: Path) -> None:
    (tmp_path / "spec.regex").write_text("(ab)*\n", encoding="utf-8")
    sent: list[object] = []
    about = {"path": str(tmp_path / "spec.regex"), "file_name": "given.regex", "changes": []}
    WebQuestion("read", about).run(sent.append)
    assert json.loads(str(sent[-1]))["kind"] == "regular expression"
    WebQuestion("read", {"path": str(tmp_path / "no.regex"), "file_name": "given.regex"}).run(sent.append)
    assert "given.regex" in json.loads(str(sent[-1]))["error"]
