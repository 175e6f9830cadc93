"""Files that exports carry can be imported with their libraries only: doctests pass them by where these are missing."""

from importlib.util import find_spec

NEEDS = {"torch_module": "torch", "hf_model": "transformers", "lens_loading": "torch"}
collect_ignore = [f"src/vitrify/interop/{name}.py" for name, library in NEEDS.items() if find_spec(library) is None]
