"""`certificate.json`: what was found about a model folder, and the hashes of the files that it was found about.

The text is canonical JSON, so the same folder and evidence give the same bytes. It holds a digest of its other entries.
This shows accidental changes, not forgery: the digest has no key, so anyone can write a matching one. `vitrify recheck`
compares the digest and tests the network again, with code of its own (`rechecking.py`).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import asdict, replace
from pathlib import Path

from vitrify import __version__
from vitrify.certification.evidence import Evidence
from vitrify.certification.mutation_test import MutationTest
from vitrify.encoding import Json, canonical, encoded
from vitrify.errors import FolderError
from vitrify.files import write_text
from vitrify.net.folder import load, spec_path

SCHEMA = 7
NAME = "certificate.json"


def certificate(folder: Path, evidence: Evidence, mutations: MutationTest | None = None) -> dict[str, Json]:
    """The certificate of a folder as JSON data; how long things took is left out, so that it is the same every time."""
    files = ("config.json", "labels.json", "model.safetensors", spec_path(folder, accept_changed=True).name)
    size = load(folder, verify=False).sizes
    proof = {key: value for key, value in (evidence.proof or {}).items() if key != "seconds"}
    data: dict[str, Json] = {
        "schema": SCHEMA,
        "tool": f"vitrify {__version__}",
        "sha256": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files},
        "evidence": replace(evidence, seconds=0.0, proof=proof).to_json(),
        "mutations": None if mutations is None else encoded(asdict(mutations)),
        "sizes": {"nonzero": size.nonzero, "dense": size.dense, "max_abs": size.max_abs},
    }
    return data | {"digest": hashlib.sha256(canonical(data).encode()).hexdigest()}


def write_certificate(folder: Path, evidence: Evidence, mutations: MutationTest | None = None) -> None:
    """Write the certificate into the folder, in one step, over an earlier one; a link in its place is refused."""
    text = canonical(certificate(folder, evidence, mutations))
    try:
        if os.path.lexists(folder / NAME) and not stat.S_ISREG((folder / NAME).lstat().st_mode):
            raise OSError(errno.EEXIST, "something else than a file is there")
        write_text(folder / NAME, text)
    except OSError as error:
        raise FolderError(
            f"{folder / NAME} can't be written ({error.strerror}): make the folder writable, or say --no-write"
        ) from None
