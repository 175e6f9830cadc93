"""Read a claim: what a paper says, why, how it is checked here, and what the check found."""

# %% Every published claim is one file whose name is the claim. How its name begins is enough.
import vitrify as v

claim = v.claim("parity_takes_a_diagonal")
print(f"{claim.fields['id']} ({claim.fields['standing']}): {claim.title}")
for part in ("Statement", "Why", "Checked", "Not checked", "Source", "Saboteur"):
    print(f"\n{part}: {claim.section(part)}")

# %% Run it. The check measures what the claim declares; a saboteur breaks each subject, and must be noticed.
outcome = v.check(claim)
print(f"\n{outcome.evidence.verdict}; the saboteur was rejected: {outcome.saboteur_rejected}")
print(f"{outcome.evidence.cases:,} cases in {outcome.evidence.seconds:.1f} s")

# %% Declared and measured quantities stand side by side.
for subject, evidence in list(outcome.evidence.parts.items())[:3]:
    for quantity in evidence.quantities:
        print(f"{subject}: {quantity.name}: declared {quantity.declared}, measured {quantity.measured}")

# %% Each exact net of the claim has its own certificate.
for name, certificate in list(outcome.certificates.items())[:3]:
    print(f"  {name}: {', '.join(certificate.methods)} on {certificate.cases:,} cases")

# %% Claims about learning train many seeds. What was measured is kept with its device, and can be read at once.
learned = v.claim("an_induction_head_learns")
recorded = learned.recorded()
print(f"\n{learned.title}: {recorded.verdict} ({recorded.scale} scale, {recorded.measured_on['device']})")
for evidence in recorded.evidence.parts.values():
    for criterion in evidence.criteria[:3]:
        print(f"  {criterion.name}: mean {criterion.mean:.3g}, {criterion.passed} of {criterion.total} seeds")
print(f"again: vitrify check {learned.name} --scale {recorded.scale}")
