"""A counter runs in log depth, checked beside a saboteur that changes no answer.

Statement: As in `counters_run_on_log_layers.py`, the file beside this one, from which the check is imported.
Checked: The same networks and words as there.
Not checked: Anything: a check that has not failed on a broken network may be unable to fail.
Source: The same as there; the saboteur is a mistake of ours [S].
Saboteur: All logits grow by 1, which changes no largest logit, so that the check passes.
"""

from __future__ import annotations

from counters_run_on_log_layers import check, subjects

from vitrify.claims._nets import Claim, Subject, edited


def sabotage(subject: Subject) -> Subject:
    return edited(subject, "unembed.b_U", plus=1.0)


CLAIM = Claim(subjects, check, sabotage, id="R903", standing="theorem", certified="proved")
