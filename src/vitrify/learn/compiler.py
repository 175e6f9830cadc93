"""Settings of JAX's compiler: random bits on a GPU, compiled programs on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import jax

config = cast(Any, jax.config)


def one_kernel_for_random_bits() -> None:
    """Let a GPU draw random bits by a ready kernel: the same bits as by a hundred operations, quicker to compile."""
    config.update("jax_threefry_gpu_kernel_lowering", True)


def remember_programs() -> None:
    """Keep compiled programs on disk, so that the next process need not compile them again."""
    folder = os.environ.get("VITRIFY_CACHE") or Path.home() / ".cache" / "vitrify"
    config.update("jax_compilation_cache_dir", str(Path(folder) / "programs"))
    config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def unshared(devices: int, batch: int) -> str | None:
    """Return why a batch can't be shared among so many devices, or None."""
    there = len(jax.devices())
    if not 1 <= devices <= there:
        return f"devices must lie between 1 and {there}, the number of those that JAX sees here, not {devices}"
    if batch % devices:
        return f"each of {devices} devices must have the same part of a batch: take a multiple of it, not {batch}"
    return None
