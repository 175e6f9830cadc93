"""What a small build imports: modules are counted exactly, seconds are printed (`pytest -s`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MAX_MODULES = 60
SCRIPT = """
import json, sys, time
import numpy, scipy.sparse
start = time.process_time()
import vitrify as v
net = v.build(v.read(sys.argv[1]))
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "modules": sorted(name for name in sys.modules if name.partition(".")[0] == "vitrify")}))
"""  # noqa: E501


def test_a_small_regex_is_built_with_few_modules(tmp_path: Path) -> None:
    (tmp_path / "x.regex").write_text("(a|b)*abb\n")
    line = [sys.executable, "-c", SCRIPT, str(tmp_path / "x.regex")]
    report = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    modules = report["modules"]
    sys.stdout.write(f"{len(modules)} modules, {report['seconds']:.3f} s beyond NumPy and SciPy\n")
    assert len(modules) <= MAX_MODULES, modules
    built = {name for name in modules if name.startswith("vitrify.constructions.")}
    assert built == {f"vitrify.constructions.{name}" for name in ("catalogue", "log_depth")}
    assert not [name for name in modules if name.startswith(("vitrify.certification", "vitrify.learn", "vitrify.cli"))]


def test_options_and_lists_import_no_construction() -> None:
    code = (
        "import sys\n"
        "from vitrify.cli.app import app\n"
        "app(['build', '--help'], standalone_mode=False)\n"
        "app(['list'], standalone_mode=False)\n"
        "print(*(name for name in sys.modules if name.startswith(('vitrify.constructions.', 'vitrify.net', 'numpy.'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.splitlines()[-1].split()) <= {"vitrify.constructions.catalogue"}
