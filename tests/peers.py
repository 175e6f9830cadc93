"""Sizes of the nets that other compilers make, as measured once, and the programs of ours that do the same."""

from __future__ import annotations

from dataclasses import dataclass

from programs import three_arguments, usual_programs
from vitrify.spec.programs.program import Program


@dataclass(frozen=True)
class Figure:
    """What a compiler takes for a program, and at most which share of its parameters we may take."""

    peer: str
    program: str
    letters: int
    length: int
    width: int
    parameters: int
    share: int = 20

    def __str__(self) -> str:
        return f"{self.program} {self.letters}x{self.length}"

    def ours(self) -> Program:
        """Our program for the same task."""
        if self.program == "three arguments":
            return three_arguments(self.letters, self.length)
        return next(program for program in usual_programs(self.letters, self.length) if program.name == self.program)


# Tracr 1.0.0 at its default settings, torchwright 0.2.0 at the smallest width that compiles; of Dyck-1 the largest
# size that Tracr finished in 150 seconds. Small nets of theirs leave less room than large ones.
FIGURES = (
    Figure("tracr", "reverse", 32, 50, 369, 8_175_549),
    Figure("tracr", "sort", 32, 50, 1_769, 51_169_853),
    Figure("tracr", "sort unique", 32, 50, 169, 154_813, share=3),
    Figure("tracr", "histogram", 32, 50, 137, 58_703, share=3),
    Figure("tracr", "dyck1", 2, 20, 83, 1_644_623),
    Figure("tracr", "shuffle dyck", 12, 20, 160, 37_870_208),
    Figure("tracr", "three arguments", 8, 10, 1_020, 5_538_270),
    Figure("torchwright", "running count", 8, 200, 192, 116_718),
)
