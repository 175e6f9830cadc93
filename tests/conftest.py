"""Property tests draw the same examples every time; `make test-all` explores new ones.

Most of a test that trains is spent compiling a program that runs for a moment: JAX is asked to optimise less, to write
plain loops instead of fused kernels (half the time), and to keep programs for tests that compile the same.
Calls of our functions whose annotations name shapes are checked by them (`shapes.py`).
Tests and modules stay to the end, so the collector of garbage need not look at them again and again.

With `--quick` (`make quick`) JAX can't be imported. A test file that imports it is skipped, and so are tests with the
marks `jax`, `long` and `slow` and those of pages in a browser; any other test that imports JAX fails, and in a process
that a test starts JAX finds no device. Property tests draw fewer examples.
"""

import gc
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

import shapes
from examples import STEADY

shapes.install()

TESTS = Path(__file__).parent
PROGRAMS = TESTS.parent / ".pytest_cache" / "programs"
QUICK_TO_COMPILE = ["--xla_cpu_parallel_codegen_split_count=1"]
if version("jaxlib").startswith("0.10."):  # a flag that it does not know ends the process
    QUICK_TO_COMPILE.append("--xla_cpu_use_fusion_emitters=false")
# Processes that tests start import what tests import.
os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("XLA_FLAGS", " ".join(QUICK_TO_COMPILE))
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(PROGRAMS))
os.environ.setdefault("VITRIFY_CACHE", str(PROGRAMS.parent))  # where commands that train look for programs
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.02")

BUSY = [HealthCheck.too_slow]  # it goes by the clock, and says only that the machine has other work too
settings.register_profile("steady", derandomize=True, max_examples=STEADY, suppress_health_check=BUSY)
settings.register_profile("explore", derandomize=False, max_examples=200, print_blob=True, suppress_health_check=BUSY)
settings.register_profile("quick", derandomize=True, max_examples=10, suppress_health_check=BUSY)
settings.load_profile("steady")


LEFT_OUT_OF_QUICK = {"jax", "long", "slow"}  # marks


class NoJax(MetaPathFinder, Loader):
    """An import hook under which JAX can't be imported: while tests are collected a skip, while they run an error."""

    collecting = True

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == "jax" else None

    def create_module(self, _: ModuleSpec) -> None:
        if self.collecting:
            pytest.skip("`make quick` leaves JAX out", allow_module_level=True)
        raise RuntimeError("`make quick` leaves JAX out: mark this test with @pytest.mark.jax")

    def exec_module(self, module: ModuleType) -> None:
        """Never called: there is no module."""


NO_JAX = NoJax()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out JAX, browsers and long tests")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("quick"):
        assert "jax" not in sys.modules
        sys.meta_path.insert(0, NO_JAX)
        os.environ["JAX_PLATFORMS"] = "none-in-make-quick"
        settings.load_profile("quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("quick"):
        left_out = [
            item
            for item in items
            if "browser" in getattr(item, "fixturenames", ()) or any(map(item.get_closest_marker, LEFT_OUT_OF_QUICK))
        ]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_collection_finish() -> None:
    NO_JAX.collecting = False
    gc.collect()
    gc.freeze()
