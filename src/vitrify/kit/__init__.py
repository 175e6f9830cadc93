"""How transformer weights are made: spaces, position codes, heads, gadgets, networks, layout, assembly."""

from vitrify.kit.assembly import assemble
from vitrify.kit.network import Affine, Attend, Bank, Builder, Experts, Network, Norm, Readout, Space, Units
from vitrify.kit.positions import position_code

__all__ = [
    "Affine",
    "Attend",
    "Bank",
    "Builder",
    "Experts",
    "Network",
    "Norm",
    "Readout",
    "Space",
    "Units",
    "assemble",
    "position_code",
]
