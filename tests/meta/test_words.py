"""Names and docstrings that a stranger trips over stay within the limits of `tools/words.py`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_vague_names_and_docstrings_are_rare() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "words.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
