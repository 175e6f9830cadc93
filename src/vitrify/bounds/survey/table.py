"""The table of results of Strobl et al. 2024 as data, with what was proved since; what executes each row is named.

The rows are statements, not facts: that each of them follows from the facts is checked. Their variants are written out
here a second time, so that a fact about a wrong variant contradicts the table or loses a row.

Source of the selection: Strobl, Merrill, Weiss, Chiang & Angluin 2024, arXiv 2311.00208, Table 1, read on slides [S].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vitrify.bounds.survey.about_models import (
    ANY_TIME,
    AS_AVERAGES,
    AS_CIRCUIT,
    AS_THRESHOLDS,
    BRACKETS,
    BY_NORM,
    IN_LOG_BITS,
    MACHINE_STEPS,
    MACHINES,
    MOVED,
    NORMED,
    PROGRAMS,
    SHUFFLES,
    STAR_FREE,
    TWO_LAYERS,
    WITH_MOD,
)
from vitrify.bounds.survey.models import ModelVariant
from vitrify.bounds.survey.rows import SurveyRow
from vitrify.bounds.survey.statements import Executed

RESTRICTED = Executed(
    "hard_attention_misses_a_letter_of_parity", "six nets, each at one length, and words on which they are wrong", "B6"
)


LEFT = ModelVariant("hard", "one side", "none", "any", "real", decision="sign")
MASKED = ModelVariant("hard", "one side", "any", "none", "real", decision="sign")
MEAN = ModelVariant("hard", "averaged", "none", "none", "O(log n)", decision="sign")
STEPS = ModelVariant("hard", "averaged", "causal", "formula", "real", decision="sign")
NORM_STEPS = ModelVariant("hard", "averaged", "causal", "none", "O(log n)", norm="layer norm", decision="sign")
SOFT = ModelVariant("softmax", "", "none", "any", "O(log n)", norm="layer norm", decision="sign")
FUTURE = ModelVariant("softmax", "", "causal", "none", "real", decision="sign")
SINES = ModelVariant("softmax", "", "none", "residues", "real", decision="sign")
LENGTHS = "a net for each length; the row has one for all"
MIXED = "two of seven heads average ties, one breaks them to the right, and three see earlier positions only"

SURVEY: Sequence[SurveyRow] = (
    SurveyRow(
        1,
        "∋",
        ("MAJORITY",),
        "Pérez et al. 2019 [S]",
        (MEAN,),
        "built here",
        (NORMED, MACHINES),
        "with layer norm and averaged ties at all lengths, or under softmax with a net for each length",
    ),
    SurveyRow(
        2,
        "∋",
        ("SHUFFLE-DYCK-k",),
        "Bhattamishra et al. 2020 [S]",
        (FUTURE,),
        "built here",
        (BY_NORM, SHUFFLES),
        "with layer norm at all lengths (k = 2), or without it a net for each length",
    ),
    SurveyRow(
        3,
        "⊇",
        ("stateless counter machines",),
        "Bhattamishra et al. 2020 [S]",
        (FUTURE,),
        "built here",
        (MACHINES,),
        LENGTHS,
    ),
    SurveyRow(
        4,
        "∋",
        ("bounded Dyck",),
        "Yao et al. 2021 [S]",
        (replace(FUTURE, positions="any"), replace(LEFT, mask="any")),
        "built here",
        (BRACKETS,),
        "recognition under averaged ties; generation under softmax, a net for each length",
    ),
    SurveyRow(
        5,
        "⊇",
        ("P",),
        "Pérez et al. 2021 [S]",
        (replace(STEPS, steps="poly(n)"),),
        "built here",
        (ANY_TIME,),
        "single machines; " + MIXED,
    ),
    SurveyRow(
        6,
        "∋",
        ("PARITY",),
        "Chiang & Cholak 2022 [T]",
        (ModelVariant("softmax", "", "none", "bounded", "real", decision="sign"),),
        "built here",
        (TWO_LAYERS,),
    ),
    SurveyRow(
        7,
        "⊋",
        ("FOC[MOD;+]",),
        "Chiang, Cholak & Pillay 2023 [S]",
        (SINES,),
        "built here",
        (PROGRAMS, TWO_LAYERS),
        "comparisons of counts, with MOD, a net for each length; of residues of counts PARITY only; not the strictness",
    ),
    SurveyRow(
        8,
        "⊇",
        ("FO[Mon]",),
        "Barceló et al. 2024 [S]",
        (LEFT,),
        "built here",
        (WITH_MOD,),
        "residues are the only predicates, with masks and ties to the right",
    ),
    SurveyRow(
        9,
        "⊇",
        ("LTL+C[Mon]",),
        "Barceló et al. 2024 [S]",
        (replace(MEAN, positions="any", precision="real"),),
        "built here",
        (NORMED,),
        "comparisons of counts of earlier positions, nested, without predicates, with layer norm and a mask",
    ),
    SurveyRow(
        10,
        "∌",
        ("PARITY", "Dyck-1"),
        "Hahn 2020 [S]",
        (LEFT,),
        "refuted here",
        (RESTRICTED,),
        "single nets, each at one length",
    ),
    SurveyRow(
        11,
        "∌",
        ("PARITY", "Dyck-2"),
        "Hahn 2020 [S]",
        (ModelVariant("softmax", "", "causal", "bounded", "real"),),
        "refuted here",
        (MOVED,),
        "PARITY, three nets without masks, the bound on the margin; not Dyck-2, not the cross-entropy",
    ),
    SurveyRow(
        12,
        "⊆",
        ("AC⁰",),
        "Hao et al. 2022 [S]",
        (LEFT,),
        "built here",
        (AS_CIRCUIT,),
        "single nets, each at small lengths",
        "each length",
    ),
    SurveyRow(
        13,
        "⊆",
        ("TC⁰",),
        "Merrill et al. 2022 [S]",
        (replace(MEAN, positions="any"),),
        "built here",
        (AS_AVERAGES,),
        "single nets of one or two layers, without positions, each at lengths up to 16",
        "each length",
    ),
    SurveyRow(
        14,
        "⊆",
        ("FOC[MOD;+]",),
        "Chiang, Cholak & Pillay 2023 [S]",
        (replace(SINES, precision="O(1), rounded once"),),
        "built here",
        (AS_THRESHOLDS,),
        "thresholds on counts of types at each length; the formula for all lengths is not written",
    ),
    SurveyRow(
        15,
        "⊆",
        ("L-uniform TC⁰",),
        "Merrill & Sabharwal 2023a [S]",
        (replace(SOFT, positions="formula"),),
        "built here",
        (IN_LOG_BITS, AS_THRESHOLDS),
        "single nets at lengths up to 16; uniformity of circuits of two nets of width 1 without positions",
    ),
    SurveyRow(16, "⊆", ("FOM[BIT]",), "Merrill & Sabharwal 2023b [S]", (replace(SOFT, positions="formula"),), "cited"),
    SurveyRow(
        17,
        "⊆",
        ("L-uniform TC⁰",),
        "Strobl 2023 [A]",
        (replace(MEAN, positions="formula"),),
        "built here",
        (AS_AVERAGES,),
        "circuits as in row 13; not their uniformity",
    ),
    SurveyRow(
        18,
        "=",
        ("RE",),
        "Pérez et al. 2021 [S]",
        (replace(STEPS, steps="unbounded"),),
        "built here",
        (ANY_TIME,),
        "⊇ for single machines; ⊆ is not executed; " + MIXED,
    ),
    SurveyRow(
        19,
        "=",
        ("star-free",),
        "Angluin, Chiang & Yang 2023 [A]",
        (MASKED,),
        "built here",
        (STAR_FREE,),
        "⊇ for every star-free automaton that is given; ⊆ for single nets",
    ),
    SurveyRow(
        20,
        "=",
        ("FO[MOD]",),
        "Angluin, Chiang & Yang 2023 [A]",
        (replace(MASKED, positions="residues"),),
        "built here",
        (WITH_MOD,),
        "⊇ only; formulas with MOD are not read back",
    ),
    SurveyRow(
        21,
        "=",
        ("FO[Mon]",),
        "Angluin, Chiang & Yang 2023 [A]",
        (replace(MASKED, positions="predicates"),),
        "built here",
        (WITH_MOD,),
        "⊇ only, with residues as the only predicates",
    ),
    SurveyRow(
        22,
        "=",
        ("P",),
        "Merrill & Sabharwal 2024 [A]",
        (replace(NORM_STEPS, steps="poly(n)"),),
        "built here",
        (MACHINE_STEPS,),
        "⊇ for single machines, with positions and a net for each number of steps; ⊆ is not executed",
    ),
)
