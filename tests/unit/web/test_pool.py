"""Workers are bounded in number, time and memory, and are gone when they are stopped."""

from __future__ import annotations

import asyncio
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loops import awaited

pytest.importorskip("fastapi")

from vitrify.web.pool import Full, Pool, Refused

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

    def read(path: Path) -> dict[str, Any]:
        return {"do": "read", "path": str(path), "given": "given.regex"}

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
            await pool.ask({"do": "read", "path": str(bomb), "given": "bomb.arpa.gz"})
        assert refusal.value.status == 413
        assert not pool._idle
        await pool.close()

    awaited(story())
