"""Certify a net: try every short word, prove the rest, keep the net, and measure what the check is worth."""

# %% A regular expression is an automaton, and an automaton is a transformer of logarithmic depth.
from pathlib import Path
from tempfile import TemporaryDirectory

import vitrify as v

spec = v.Automaton.from_regex("(ab|ba)*")
net = v.build(spec, max_length=16)
print(net)
print("abba is accepted:", v.run(net, "abba").accept)

# %% a check: all words up to a length, then long random ones. One wrong answer would be its witness.
evidence = v.certify(net, spec, max_length=8)
print(evidence.verdict, f"({evidence.cases:,} cases)")
for domain in evidence.domains:
    print(f"  {domain.method}: {domain.count} {domain.kind}, of length {domain.shortest} to {domain.longest}")

# %% A proof says more. It has two links: the weights compute their ideal network, in which heads select exactly, and
# the ideal network computes the spec; each for every word up to the maximum length.
evidence = v.certify(net, spec, max_length=6, prove=True)
print(*evidence.methods)
for link in evidence.links:
    print(f"  {link.name}: {link.scope}, by {link.lemma}")
proof = evidence.proof or {}
print(f"for all words to length {proof['max_length']}: the best answer has a margin of at least {proof['margin']:.3g}")

# %% Real arithmetic, too. Floats round; balls of rational numbers enclose what the net would say without rounding.
evidence = v.certify(net, spec, max_length=4, reals=True)
print("bits that decide every answer:", evidence.measured("bits that decide every answer"))

# %% A folder keeps the net with its spec. Its files have digests: a changed one is noticed.
with TemporaryDirectory() as place:
    v.save(net, Path(place, "net"), spec)
    again = v.load(Path(place, "net"))
    print(sorted(path.name for path in Path(place, "net").iterdir()))
print("the same net, to the bit:", again.digest == net.digest)

# %% What the check is worth: break the net in a hundred ways, and count those that it notices.
report = v.mutation_test(net, spec, count=100, max_length=6)
print(f"{report.rejected} of {report.tried} broken nets were rejected")
for what, why in report.survivors:
    print(f"  survived: {what}: {why}")
