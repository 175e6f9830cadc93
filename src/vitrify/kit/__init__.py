"""Parts from which transformer weights are made: spaces, position codes, heads, gadgets, networks, layout, assembly."""

from vitrify.kit.assembly import assemble

__all__ = ["assemble"]
