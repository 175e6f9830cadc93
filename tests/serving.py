"""The app on a port of this machine, and a visitor who asks it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def serving(**settings: Any) -> Iterator[str]:
    """The address of the app while it runs."""
    from vitrify.web.app import server as server_of
    from vitrify.web.site import ServerSettings

    with socket.socket(proto=socket.IPPROTO_TCP) as listening:  # or else answers wait for an acknowledgement
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        port = listening.getsockname()[1]
        server = server_of(ServerSettings(port=port, **settings), lifespan="on")
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join(20)


class Visitor:
    """Someone who asks the app, with a cookie jar of their own."""

    def __init__(self, address: str) -> None:
        import httpx

        self.http = httpx.Client(base_url=address, timeout=120, trust_env=False)

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def give(self, name: str, data: bytes | str) -> Any:
        """Upload a spec."""
        return self.http.post("/api/glass/specs", params={"name": name}, content=data)

    def wait(self, job: str) -> tuple[str, dict[str, Any]]:
        """How a job ends, and what it says at the end."""
        with self.http.stream("GET", f"/api/glass/jobs/{job}") as answer:
            event = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    event = line.removeprefix("event: ")
                elif line.startswith("data: ") and event in ("done", "failed"):
                    return event, json.loads(line.removeprefix("data: "))
        raise AssertionError("the job ended without a word")

    def build(self, name: str, data: bytes | str, construction: str | None = None, **options: Any) -> dict[str, Any]:
        """A built net."""
        spec = self.give(name, data).raise_for_status().json()["spec"]
        answer = self.http.post(
            "/api/glass/nets", json={"spec": spec, "construction": construction, "options": options}
        )
        event, found = self.wait(answer.raise_for_status().json()["job"])
        assert event == "done", found
        return found

    def check(self, net: str) -> dict[str, Any]:
        """What a check finds."""
        event, found = self.wait(self.http.post(f"/api/glass/nets/{net}/check").raise_for_status().json()["job"])
        assert event == "done", found
        return found

    def run(self, net: str, words: list[str], stop: int = 0, place: int | None = None) -> dict[str, Any]:
        """One stop of a run."""
        question = {"words": words, "stop": stop, "position": place}
        found: dict[str, Any] = self.http.post(f"/api/glass/nets/{net}/run", json=question).raise_for_status().json()
        return found
