"""What variants of transformers recognize, and what they can't, by theorems; where one is executed here, by what."""

from __future__ import annotations

from dataclasses import replace

from vitrify.bounds.survey.models import AVERAGED, ONE_SIDE, SOFTMAX, ModelVariant
from vitrify.bounds.survey.statements import Built, Executed, Inside, Refuted

# Names of claims, which tests compare with the catalogue.
PAST = "past_time_temporal_logic_takes_one_layer_per_nested_operator"
AS_CIRCUIT = Executed(
    "hard_attention_runs_as_circuits_of_constant_depth", "circuits of eight nets, compared at small lengths", "B6"
)
AS_THRESHOLDS = Executed(
    "finite_precision_softmax_runs_as_threshold_circuits",
    "circuits of five nets at lengths up to 10, in O(1) bits with exact sums; uniformity is not checked",
    "B8",
)
IN_LOG_BITS = Executed(
    "logarithmic_precision_runs_as_uniform_threshold_circuits",
    "circuits in ⌈log₂ n⌉ bits of two nets and of those built for MAJORITY, at lengths up to 16; for two nets of width "
    "1 without positions, what a generator with O(log n) bits of memory writes",
    "B15",
)
AS_ROUNDED_SUMS = Executed(
    "sums_rounded_after_each_addition_run_without_threshold_gates",
    "circuits of five nets without positions at lengths up to 8 and at 24, sums from left to right",
    "B13",
)
AS_AVERAGES = Executed(
    "average_hard_attention_runs_as_threshold_circuits",
    "circuits of three nets and of those built for MAJORITY, in ⌈log₂ n⌉ + 2 bits at most, at lengths up to 16",
    "B14",
)
MOVED = Executed(
    "one_letter_moves_softmax_attention_by_one_over_n", "the bound C/n for three nets, for PARITY only", "B7"
)
STAR_FREE = Executed(
    "hard_attention_without_positions_recognizes_exactly_the_star_free_languages",
    "13 languages built and 12 random nets, all proved at every length and read back as automata and formulas",
    "R12",
)
WITH_MOD = Executed(PAST, "built for formulas with MOD, the residues as a table of positions", "R12")
SOFT_PAST = Executed(PAST, "13 formulas of all operators under softmax, a net for each length", "R12")
COUNTS = "counting_languages_run_on_uniform_attention"
SHUFFLES = Executed(COUNTS, "two-layer nets for each length, softmax or sparsemax", "R9")
MACHINES = Executed(COUNTS, "one-layer nets for each length, softmax or sparsemax", "R9")
PROGRAMS = Executed("c_rasp_programs_run_on_softmax_attention", "24 random programs, a net for each length", "R13")
BY_NORM = Executed(
    "c_rasp_programs_run_at_any_length_by_layer_norm", "eight programs, one set of arrays for words up to 120", "R13"
)
NORMED = Executed("counting", "hard attention that averages ties, mode layernorm: one set of arrays for all lengths")
TWO_LAYERS = Executed(
    "parity_takes_two_softmax_layers_or_a_counter", "all words to length 9, two words each up to length 10⁴", "R11"
)
COMMUTING = Executed("commutative_automata_run_in_one_layer", "seven automata, a net for each length", "R16")
SOLVABLE = Executed("solvable_automata_run_in_constant_depth", "seven automata, a net for each length", "R15")
LOG_DEPTH = Executed("any_automaton_runs_in_log_depth", "five automata, a net for each length", "R14")
LOOPED = Executed(
    "one_layer_in_a_loop_runs_any_automaton",
    "one weight set for all lengths, proved for words up to length 1000",
    "R34",
)
BRACKETS = Executed(
    "two_layers_generate_bounded_dyck_languages",
    "recognition for two kinds to depth 3, one set of weights; generation to depth 10, a net for each length",
    "R10",
)
MACHINE_STEPS = Executed(
    "chain_of_thought_runs_turing_machines_in_two_layers", "a net for each number of steps, up to 200 steps", "R27"
)
ANY_TIME = Executed(
    "one_set_of_weights_runs_a_turing_machine_for_any_time",
    "single machines, one set of weights for words and steps of up to 23,726,565 symbols together",
    "R27",
)
PARITY_AT_ALL = Executed(
    "parity_at_every_length_takes_two_layers",
    "one set of weights, proved to 96 letters under hard attention and 48 under softmax, run on some words to 1,000",
    "R11",
)
REACHABLE = Executed(
    "two_layers_in_a_loop_decide_reachability_over_padding_tokens",
    "graphs of up to 10 nodes; positions and a temperature for each number of nodes",
    "R28",
)
PRODUCTS = Executed(
    "a_formula_of_depth_d_is_a_product_of_permutations_in_2d_rounds",
    "formulas of depth up to 4, whose program is in the table of positions",
    "R44",
)
THOUGHTS = Executed(
    "a_thought_of_hard_attention_sees_few_letters_of_parity",
    "nine nets with one thought too few, three of them trained, each at one length",
    "B11",
)
GATES = Executed("chain_of_thought_runs_circuits_gate_by_gate", "circuits of up to 100 gates, an adder", "R26")

# Variants that several facts are about.
# Of a net for one length, a table of positions may be scaled to be bounded, and the weights that read it scaled back.
PLAIN = ModelVariant("softmax", "", "causal", "bounded", "O(log n)")
HARD_PLAIN = ModelVariant("hard", "averaged", "any", "bounded", "O(log n)")
EXACT_HARD = ModelVariant("hard", "one side", mask="any")
BOUNDED = ModelVariant("softmax", "", "any", "bounded", "real")
POLY = "poly(n)"
PADDED = ModelVariant("softmax", "", "any", "bounded", "O(log n)", "log n", padding=POLY)

BUILT = (
    Built(EXACT_HARD, "star-free", "one net", "Angluin, Chiang & Yang 2023 [A]", STAR_FREE),
    Built(replace(EXACT_HARD, positions="residues"), "FO[MOD]", "one net", "Angluin, Chiang & Yang 2023 [A]", WITH_MOD),
    Built(replace(EXACT_HARD, positions="predicates"), "FO[Mon]", "one net", "Angluin, Chiang & Yang 2023 [A]"),
    Built(ModelVariant("hard", "one side", "none", "any", "real"), "FO[Mon]", "one net", "Barceló et al. 2024 [S]"),
    Built(
        ModelVariant("hard", "averaged", "any", "formula", "O(log n)"),
        "past-time temporal logic",
        "one net",
        "Angluin, Chiang & Yang 2023 [A]; a further score of g j/(2(i+1)), where g is the least gap of the others, "
        "breaks ties to the right [D]",
    ),
    Built(
        ModelVariant("softmax", "", "causal", "formula", "O(log n)"),
        "past-time temporal logic",
        "one net",
        "Yang, Strobl, Chiang & Angluin 2024 [A]; the last marked key by the score 4(2(i+1) mark + j), the previous "
        "one by 4(2(i-1)j - j²), both in O(log n) bits [D]",
    ),
    Built(PLAIN, "past-time temporal logic", "each length", "as the claim: our own nets", SOFT_PAST),
    Built(ModelVariant("hard", "averaged", "none", "any", "real"), "LTL+C[Mon]", "one net", "Barceló et al. 2024 [S]"),
    Built(
        ModelVariant("hard", "averaged", "none", "none", "O(log n)", "one layer", decision="sign"),
        "MAJORITY",
        "one net",
        "Pérez et al. 2019 [S]",
    ),
    Built(
        ModelVariant("softmax", "", "none", "none", "O(log n)", "one layer", decision="sign"),
        "MAJORITY",
        "one net",
        "Pérez et al. 2019 [S]; equal scores give equal weights under softmax, too [D]",
    ),
    Built(replace(PLAIN, depth="one layer"), "MAJORITY", "each length", "Pérez et al. 2019 [S]", MACHINES),
    Built(
        ModelVariant("softmax", "", "causal", "none", "real", decision="sign"),
        "SHUFFLE-DYCK-k",
        "one net",
        "Bhattamishra et al. 2020 [S]",
    ),
    Built(
        ModelVariant("softmax", "", "causal", "none", "real", decision="sign"),
        "stateless counter machines",
        "one net",
        "Bhattamishra et al. 2020 [S]",
    ),
    Built(PLAIN, "SHUFFLE-DYCK-k", "each length", "Bhattamishra et al. 2020 [S]", SHUFFLES),
    Built(
        replace(PLAIN, depth="one layer"),
        "stateless counter machines",
        "each length",
        "Bhattamishra et al. 2020 [S]",
        MACHINES,
    ),
    Built(PLAIN, "C-RASP[MOD]", "each length", "Yang & Chiang 2024 [S]", PROGRAMS),
    Built(
        ModelVariant("softmax", "", "causal", "none", "O(log n)", norm="layer norm"),
        "C-RASP",
        "one net",
        "Yang & Chiang 2024 [S]; counts differ by 1/(i+1) at least, which O(log n) bits hold [D]",
        BY_NORM,
    ),
    Built(
        ModelVariant("hard", "averaged", "causal", "none", "O(log n)", norm="layer norm"),
        "C-RASP",
        "one net",
        "Yang & Chiang 2024 [S]; equal scores are tied [D]",
        NORMED,
    ),
    Built(
        ModelVariant("softmax", "", "causal", "none", "O(1), rounded once"),
        "C-RASP",
        "one net",
        "Yang, Cadilhac & Chiang 2025 [A]",
    ),
    Built(
        ModelVariant("softmax", "", "none", "residues", "real", decision="sign"),
        "FOC[MOD;+]",
        "one net",
        "Chiang, Cholak & Pillay 2023 [S]",
    ),
    Built(
        ModelVariant("softmax", "", "none", "bounded", "O(log n)", decision="sign"),
        "PARITY",
        "one net",
        "Chiang & Cholak 2022 [T]; the margin falls like 1/n²",
        TWO_LAYERS,
    ),
    Built(
        ModelVariant("softmax", "", "none", "formula", "real", decision="sign"),
        "PARITY",
        "one net",
        "Kozachinskiy, Steifer & Wałęga 2026 [A]; our own two layers [D]",
        PARITY_AT_ALL,
    ),
    *(
        Built(model, "PARITY", "one net", source, PARITY_AT_ALL)
        for model, source in (
            (ModelVariant("softmax", "", "none", "formula", "real", norm="layer norm"), "Chiang & Cholak 2022 [T]"),
            (ModelVariant("hard", "averaged", "causal", "formula", "O(log n)"), "our own two layers [D]"),
        )
    ),
    Built(
        ModelVariant("hard", "averaged", "none", "formula", "O(log n)"),
        "PARITY",
        "one net",
        "the mean k/(n+1) of k ones selects position k by the score (2kj - j²)/(n+1), and the parity of a position is "
        "part of its code [D]",
    ),
    Built(replace(PLAIN, depth="one layer"), "commutative automata", "each length", "Liu et al. 2023 [S]", COMMUTING),
    Built(replace(PLAIN, mask="any"), "solvable automata", "each length", "Liu et al. 2023 [S]", SOLVABLE),
    Built(HARD_PLAIN, "solvable automata", "each length", "Liu et al. 2023 [S]", SOLVABLE),
    Built(replace(HARD_PLAIN, positions="none"), "bounded Dyck", "one net", "Yao et al. 2021 [S]", BRACKETS),
    Built(replace(PLAIN, depth="log n"), "regular languages", "each length", "Liu et al. 2023 [S]", LOG_DEPTH),
    Built(replace(HARD_PLAIN, depth="log n"), "regular languages", "each length", "Liu et al. 2023 [S]", LOG_DEPTH),
    Built(
        ModelVariant("softmax", "", "causal", "formula", "O(log n)", "log n"),
        "regular languages",
        "one net",
        "Merrill & Sabharwal 2025a [A]",
        LOOPED,
    ),
    Built(PADDED, "directed reachability", "each length", "Merrill & Sabharwal 2025a [A]; our own weights", REACHABLE),
    Built(PADDED, "NC¹", "each length", "Barrington 1989 [K]; our own weights", PRODUCTS),
    Built(
        ModelVariant(
            "hard", "averaged", "causal", "none", "O(log n)", padding=POLY, norm="layer norm", decision="sign"
        ),
        "FOM[BIT]",
        "one net",
        "Merrill & Sabharwal 2025b [A]",
    ),
    Built(
        replace(
            ModelVariant("hard", "averaged", "causal", "none", "O(log n)", "log n", norm="layer norm", decision="sign"),
            padding=POLY,
        ),
        "FO-uniform TC¹",
        "one net",
        "Merrill & Sabharwal 2025b [A]",
    ),
    Built(
        ModelVariant("hard", "averaged", "causal", "none", "O(log n)", steps=POLY, norm="layer norm"),
        "P",
        "one net",
        "Merrill & Sabharwal 2024 [A]",
    ),
    Built(
        ModelVariant("hard", "averaged", "causal", "formula", "real", steps=POLY),
        "P",
        "one net",
        "Pérez et al. 2021 [S]",
    ),
    Built(
        ModelVariant("hard", "averaged", "causal", "formula", "real", steps="unbounded"),
        "RE",
        "one net",
        "Pérez et al. 2021 [S]",
    ),
    Built(
        ModelVariant("hard", "averaged", "any", "formula", "O(log n)", steps=POLY),
        "P",
        "one net",
        "Pérez et al. 2021 [S]; our own weights",
        ANY_TIME,
    ),
    Built(
        ModelVariant("hard", "averaged", "any", "formula", "real", steps="unbounded"),
        "RE",
        "one net",
        "Pérez et al. 2021 [S]; our own weights",
        ANY_TIME,
    ),
    Built(replace(HARD_PLAIN, steps=POLY), "P", "each length", "Merrill & Sabharwal 2024 [S]", MACHINE_STEPS),
    Built(replace(PLAIN, steps=POLY), "P", "each length", "Merrill & Sabharwal 2024 [S]", MACHINE_STEPS),
    Built(replace(HARD_PLAIN, steps=POLY), "P/poly", "each length", "Li et al. 2024 [A]", GATES),
    Built(replace(PLAIN, steps=POLY), "P/poly", "each length", "Li et al. 2024 [A]", GATES),
)

INSIDE = (
    Inside(ONE_SIDE, "star-free", "one net", "Angluin, Chiang & Yang 2023 [A]", STAR_FREE),
    Inside(replace(ONE_SIDE, positions="residues"), "FO[MOD]", "one net", "Angluin, Chiang & Yang 2023 [A]"),
    Inside(replace(ONE_SIDE, positions="predicates"), "FO[Mon]", "one net", "Angluin, Chiang & Yang 2023 [A]"),
    Inside(
        replace(ONE_SIDE, positions="any", norm="layer norm"), "AC⁰", "each length", "Hao et al. 2022 [S]", AS_CIRCUIT
    ),
    Inside(AVERAGED, "TC⁰", "each length", "Merrill et al. 2022 [S]", AS_AVERAGES),
    Inside(replace(AVERAGED, positions="formula"), "L-uniform TC⁰", "one net", "Strobl 2023 [A]"),
    Inside(
        replace(SOFTMAX, precision="O(1), sums rounded"),
        "AC⁰",
        "each length",
        "Li et al. 2024 [A]; in our arithmetic [D]",
        AS_ROUNDED_SUMS,
    ),
    Inside(
        replace(SOFTMAX, precision="O(1), rounded once"),
        "TC⁰",
        "each length",
        "Merrill & Sabharwal 2023a [S]; in our arithmetic [D]",
        AS_THRESHOLDS,
    ),
    Inside(
        ModelVariant("softmax", "", "causal", "none", "O(1), rounded once", decision="sign"),
        "C-RASP",
        "one net",
        "Yang, Cadilhac & Chiang 2025 [A]",
    ),
    Inside(
        ModelVariant("softmax", "", "none", "residues", "O(1), rounded once", decision="sign"),
        "FOC[MOD;+]",
        "one net",
        "Chiang, Cholak & Pillay 2023 [S]",
        AS_THRESHOLDS,
    ),
    Inside(SOFTMAX, "TC⁰", "each length", "Merrill & Sabharwal 2023a [S]", IN_LOG_BITS),
    Inside(
        replace(SOFTMAX, positions="formula"), "L-uniform TC⁰", "one net", "Merrill & Sabharwal 2023a [S]", IN_LOG_BITS
    ),
    Inside(replace(SOFTMAX, positions="formula"), "FOM[BIT]", "one net", "Merrill & Sabharwal 2023b [S]"),
    Inside(replace(SOFTMAX, precision="poly(n)"), "TC⁰", "each length", "Chiang 2025 [A]"),
    Inside(
        replace(AVERAGED, positions="formula", padding=POLY), "FOM[BIT]", "one net", "Merrill & Sabharwal 2025b [A]"
    ),
    Inside(
        replace(AVERAGED, positions="formula", padding=POLY, depth="log n"),
        "FO-uniform TC¹",
        "one net",
        "Merrill & Sabharwal 2025b [A]",
    ),
    Inside(
        replace(SOFTMAX, depth="log n"),
        "TC¹",
        "each length",
        "Merrill & Sabharwal 2023a [S]; log n layers are log n such circuits, one after the other [D]",
    ),
    Inside(
        replace(AVERAGED, steps="log n"),
        "TC⁰",
        "each length",
        "Merrill et al. 2022 [S]; log n steps over a finite alphabet have n^O(1) transcripts, which are all checked "
        "side by side [D]; Li et al. 2024 [K]",
    ),
    Inside(
        replace(AVERAGED, steps=POLY),
        "P/poly",
        "each length",
        "Merrill et al. 2022 [S]; polynomially many steps of such circuits [D]",
    ),
    Inside(replace(AVERAGED, positions="formula", steps=POLY), "P", "one net", "Merrill & Sabharwal 2024 [A]"),
    Inside(
        ModelVariant("hard", "averaged", "causal", "formula", "real", steps="unbounded", decision="sign"),
        "RE",
        "one net",
        "Pérez et al. 2021 [S]: a net with rational numbers is a program [D]",
    ),
)

# For each of these, infinitely many lengths have two words that differ in the first letter, of which one is in the
# language: 1^n is, 01^(n-1) is not; and so on.
SENSITIVE = ("star-free", "bounded Dyck", "PARITY", "MAJORITY", "Dyck-1", "word problem of S5")
REFUTED = (
    *(
        Refuted(
            BOUNDED,
            problem,
            "one net",
            "Hahn 2020 [S]: at some words the first letter decides. It moves the last logits by O(1/n), with masks by "
            "O((log n)^L/n), as a letter at distance d has weight O(1/d) [D]",
            MOVED if problem == "PARITY" else None,
        )
        for problem in SENSITIVE
    ),
    Refuted(
        ModelVariant("softmax", "", "any", "any", "real", "one layer", decision="sign"),
        "PARITY",
        "one net",
        "Kozachinskiy, Steifer & Wałęga 2026 [A]; no mask matters where all letters are seen [D]",
    ),
    Refuted(
        ModelVariant("hard", "one side", "causal", "any", "real", steps="log n", decision="sign"),
        "PARITY",
        "one net",
        "Amiri, Huang, Rofin & Hahn 2025 [A]: it takes a number of thoughts in proportion to n [S]",
        THOUGHTS,
    ),
)
