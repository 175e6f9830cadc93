"""Messages between two parties, bit by bit, and their count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vitrify.arrays import Array
from vitrify.errors import InputError


@dataclass(frozen=True)
class Message:
    """A message: its sender, a description of its content, and its bits as a string."""

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
    """All messages of one run of a protocol, and its output."""

    messages: tuple[Message, ...]
    output: Array

    @property
    def bits(self) -> int:
        """Bits sent by all parties together."""
        return sum(map(len, self.messages))

    def sent_by(self, party: str) -> int:
        """Return the bits sent by one party."""
        return sum(len(message) for message in self.messages if message.sender == party)


def write(numbers: Iterable[int], width: int) -> str:
    """Return integers as a string of bits, `width` bits each, negative ones in two's complement.

    >>> write([3, -1], 4)
    '00111111'
    """
    parts = []
    for number in numbers:
        if not -(1 << (width - 1)) <= number < 1 << width:
            raise InputError(f"{number} does not fit {width} bits")
        parts.append(format(number % (1 << width), f"0{width}b"))
    return "".join(parts)


def read(bits: str, width: int, signed: Sequence[bool]) -> list[int]:
    """Return the integers that `write` wrote; `signed` says which of them may be negative.

    >>> read("00111111", 4, [True, True]), read("00111111", 4, [True, False])
    ([3, -1], [3, 15])
    """
    if len(bits) != width * len(signed):
        raise InputError(f"{len(signed)} numbers of {width} bits do not make {len(bits)} bits")
    numbers = []
    for index, negative in enumerate(signed):
        number = int(bits[index * width : (index + 1) * width], 2)
        numbers.append(number - (1 << width) if negative and number >> (width - 1) else number)
    return numbers
