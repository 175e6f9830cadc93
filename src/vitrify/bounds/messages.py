"""Messages between parties, bit by bit, and the ledger that counts them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from vitrify.errors import InputError


@dataclass(frozen=True)
class Message:
    """What one party tells another: a string of zeros and ones, and in words what it says."""

    sender: str
    what: str
    bits: str

    def __post_init__(self) -> None:
        if set(self.bits) - {"0", "1"}:
            raise InputError(f"a message is made of zeros and ones, not {self.bits!r}")

    def __len__(self) -> int:
        return len(self.bits)


@dataclass(frozen=True)
class Transcript:
    """All messages of one run of a protocol, and what came out."""

    messages: tuple[Message, ...]
    output: Any

    @property
    def bits(self) -> int:
        """The ledger: bits sent by everybody together."""
        return sum(map(len, self.messages))

    def sent_by(self, party: str) -> int:
        """Bits sent by one party."""
        return sum(len(message) for message in self.messages if message.sender == party)


def write(numbers: Iterable[int], width: int) -> str:
    """Integers side by side, each in so many bits, negative ones as their two's complement.

    >>> write([3, -1], 4)
    '00111111'
    """
    found = []
    for number in numbers:
        if not -(1 << (width - 1)) <= number < 1 << width:
            raise InputError(f"{number} does not fit {width} bits")
        found.append(format(number % (1 << width), f"0{width}b"))
    return "".join(found)


def read(bits: str, width: int, signed: Sequence[bool]) -> list[int]:
    """The integers that `write` wrote; it must be known which of them may be negative.

    >>> read("00111111", 4, [True, True]), read("00111111", 4, [True, False])
    ([3, -1], [3, 15])
    """
    if len(bits) != width * len(signed):
        raise InputError(f"{len(signed)} numbers of {width} bits do not make {len(bits)} bits")
    found = []
    for place, negative in enumerate(signed):
        number = int(bits[place * width : (place + 1) * width], 2)
        found.append(number - (1 << width) if negative and number >> (width - 1) else number)
    return found
