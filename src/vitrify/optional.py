"""Optional libraries, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from vitrify.errors import InputError


def need(module: str, extra: str) -> ModuleType:
    """The module, or a refusal that names the extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"this needs {module.split('.')[0]}, which can't be imported ({error}): pip install 'vitrify[{extra}]'"
        ) from None
