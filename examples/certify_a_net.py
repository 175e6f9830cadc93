"""Certify a net: try every short word, prove the rest, keep the net, and measure what the examination is worth."""

# %% A regular expression is an automaton, and an automaton is a transformer of logarithmic depth.
from pathlib import Path
from tempfile import TemporaryDirectory

import vitrify as v

spec = v.Automaton.from_regex("(ab|ba)*")
net = v.build(spec, max_length=16)
print(net)
print("abba is accepted:", v.answer(net, "abba")["accept"])

# %% An examination: all words up to a length, then long random ones. One wrong answer would be its witness.
evidence = v.certify(net, spec, max_length=8)
print(evidence.verdict, f"({evidence.cases:,} cases): {evidence.domain}")

# %% A proof says more: that each head finds what it looks for in *every* word, and how far noise can carry.
evidence = v.certify(net, spec, max_length=6, prove=True)
print(evidence.method)
print(evidence.notes[-1])

# %% Real arithmetic, too. Floats round; balls of rational numbers enclose what the net would say without rounding.
evidence = v.certify(net, spec, max_length=4, reals=True)
print("bits that took:", {name: bits for name, bits in evidence.measured.items() if "bits" in name})

# %% A folder keeps the net with its spec. Its files have digests: a changed one is noticed.
with TemporaryDirectory() as place:
    v.save(net, Path(place, "net"), spec)
    again = v.load(Path(place, "net"))
    print(sorted(path.name for path in Path(place, "net").iterdir()))
print("the same net, to the bit:", again.digest == net.digest)

# %% What the examination is worth: break the net in a hundred ways, and count those that it notices.
report = v.campaign(net, spec, count=100, max_length=6)
print(f"{report.rejected} of {report.tried} broken nets were rejected")
for what, why in report.survivors:
    print(f"  survived: {what}: {why}")
