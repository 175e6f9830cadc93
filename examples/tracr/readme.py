"""A program of Tracr with a call of its compiler, which returns a network of ours: `python` needs Tracr, we do not.

vitrify build examples/tracr/readme.py -o reverse
"""

# mypy: ignore-errors

from tracr.compiler import compiling
from tracr.rasp import rasp


def make_length():
    return rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE))


flip = rasp.Select(rasp.indices, make_length() - rasp.indices - 1, rasp.Comparison.EQ)
reverse = rasp.Aggregate(flip, rasp.tokens)
model = compiling.compile_rasp_to_model(reverse, vocab={1, 2, 3}, max_seq_len=5, compiler_bos="BOS")

assert model.apply(["BOS", 1, 2, 3]).decoded == ["BOS", 3, 2, 1]
