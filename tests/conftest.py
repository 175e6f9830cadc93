"""Property tests draw the same examples every time; `make test-all` explores new ones.

Most of a test that trains is spent compiling a program that runs for a moment: JAX is asked to optimise less, to write
plain loops instead of fused kernels (half the time), and to keep programs for tests that compile the same.
Tests and modules stay to the end, so the collector of garbage need not look at them again and again.
"""

import gc
import os
from importlib.metadata import version
from pathlib import Path

from hypothesis import HealthCheck, settings

PROGRAMS = Path(__file__).parents[1] / ".pytest_cache" / "programs"
QUICK_TO_COMPILE = ["--xla_cpu_parallel_codegen_split_count=1"]
if version("jaxlib").startswith("0.10."):  # a flag that it does not know ends the process
    QUICK_TO_COMPILE.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(QUICK_TO_COMPILE))
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(PROGRAMS))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")

BUSY = [HealthCheck.too_slow]  # it goes by the clock, and says only that the machine has other work too
settings.register_profile("steady", derandomize=True, suppress_health_check=BUSY)
settings.register_profile("explore", derandomize=False, max_examples=200, print_blob=True, suppress_health_check=BUSY)
settings.load_profile("steady")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
