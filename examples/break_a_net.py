"""Break a net: change one weight by hand, and see who notices, where, and why."""

# %% A net that says after every letter whether there were oddly many ones so far.
import numpy as np

import vitrify as v

spec = v.read("cyclic:2")  # counts ones modulo 2; `v.read` takes files, too
net = v.build(spec, "commutative", max_length=12)
print(net, "\n", v.certify(net, spec, max_length=8).verdict)

# %% Every head and every unit has a label that says what it is for.
for head in net.labels.heads:
    print(f"head {head.block}.{head.index}: {head.name}")
for units in net.labels.units[:2]:
    print(f"units {units.start}–{units.stop - 1}: {units.name}")

# %% Set one hidden unit to zero. `with_array` gives another net: values are never changed in place.
array = np.array(net.arrays["blocks.0.mlp.W_out"])
array[2] = 0
broken = net.with_array("blocks.0.mlp.W_out", array)
print("before:", v.run(net, ["1", "1", "1"]).states)
print("broken:", v.run(broken, ["1", "1", "1"]).states)

# %% The check finds a shortest word on which it errs: its witness.
evidence = v.certify(broken, spec, max_length=8)
print(evidence.verdict, dict(evidence.witness or {}))

# %% Where does it go wrong? Run both nets on the witness, and compare the activations by name.
word = (evidence.witness or {})["word"]
good, bad = v.trace(net, word), v.trace(broken, word)
for name in good.activations:
    apart = float(np.abs(good[name] - bad[name]).max())
    print(f"{name:32} {'differs by ' + format(apart, '.3g') if apart > 1e-9 else 'the same'}")

# %% Two hundred random breaks. What survives must do no harm, and the report says why.
report = v.mutation_test(net, spec, count=200, max_length=8)
print(f"{report.rejected} of {report.tried} broken nets were noticed; survivors: {len(report.survivors)}")
