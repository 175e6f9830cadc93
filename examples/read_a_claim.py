"""Read a claim: what a paper says, why, how it is checked here, and what the check found."""

# %% Every published claim is one file whose name is the claim. How its name begins is enough.
import vitrify as v

claim = v.claim("parity_takes_a_diagonal")
print(f"{claim.fields['row']} ({claim.fields['status']}): {claim.title}")
for part in ("Statement", "Why", "Checked", "Source", "Saboteur"):
    print(f"\n{part}: {claim.section(part)}")

# %% Run it. The check measures what the claim declares; a saboteur breaks each subject, and must be noticed.
outcome = v.check(claim)
print(f"\n{outcome.evidence.verdict}; the saboteur was rejected: {outcome.saboteur_rejected}")
print(f"{outcome.evidence.cases:,} cases in {outcome.evidence.seconds:.1f} s")

# %% Declared and measured quantities stand side by side.
for name, declared in list(outcome.evidence.declared.items())[:6]:
    print(f"{name}: declared {declared}, measured {outcome.evidence.measured.get(name)}")

# %% Each exact net of the claim has its own certificate.
for name, shown in list(outcome.certificates.items())[:3]:
    print(f"  {name}: {shown['method']} on {shown['cases']:,} cases")

# %% Claims about learning train many seeds. What was measured is kept with its device, and can be read at once.
learned = v.claim("an_induction_head_learns")
found = v.kept(learned, "docs/evidence")  # from the root of the repository
print(f"\n{learned.title}: {found['verdict']} ({found['scale']} scale, {found['measured on']['device']})")
print(f"again: vitrify check {learned.name} --scale {found['scale']}")
