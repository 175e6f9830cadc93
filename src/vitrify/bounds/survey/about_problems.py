"""Which problems are in which classes, which are not, and which reduce to others."""

from __future__ import annotations

from vitrify.bounds.survey.statements import Below, Outside

# The columns of the map: languages, and one class.
PROBLEMS = (
    "star-free",
    "bounded Dyck",
    "PARITY",
    "MAJORITY",
    "Dyck-1",
    "word problem of S5",
    "circuit value",
    "halting",
)
CLOSED = ("AC⁰", "ACC⁰", "TC⁰", "NC¹", "TC¹", "P/poly")  # under AC⁰ reductions

OUTSIDE = (
    Outside("PARITY", "AC⁰", "Furst, Saxe & Sipser 1984 [K]"),
    Outside("word problem of S5", "TC⁰", "complete for NC¹: Barrington 1989 [K]", unless="TC⁰ = NC¹"),
    Outside("directed reachability", "TC⁰", "complete for NL [K]", unless="TC⁰ = NL"),
    Outside("circuit value", "TC⁰", "complete for P, also under AC⁰ reductions: Ladner 1975 [K]", unless="P ⊆ TC⁰"),
    Outside("circuit value", "TC¹", "complete for P, also under AC⁰ reductions: Ladner 1975 [K]", unless="P ⊆ TC¹"),
    Outside("halting", "P/poly", "complete for RE, which contains EXPSPACE, which is not in P/poly: Kannan 1982 [K]"),
)

BELOW = (
    Below("bounded Dyck", "star-free", "its automata are aperiodic, as the holonomy of each (k, D) shows [D]"),
    Below("star-free", "past-time temporal logic", "Kamp 1968 [K]"),
    Below("past-time temporal logic", "star-free", "Kamp 1968 [K]"),
    Below("star-free", "FO[MOD]", "FO[<] without predicates: McNaughton & Papert 1971 [K]"),
    Below("FO[MOD]", "FO[Mon]", "residues are monadic predicates [D]"),
    Below("FO[Mon]", "AC⁰", "first-order formulas are circuits of constant depth: Immerman 1987 [K]"),
    Below("star-free", "solvable automata", "all their groups are trivial: Schützenberger 1965 [K]"),
    Below("PARITY", "commutative automata", "two states, and letters that commute [D]"),
    Below("commutative automata", "solvable automata", "their groups are abelian [D]"),
    Below("solvable automata", "regular languages", "by definition"),
    Below("word problem of S5", "regular languages", "an automaton of 120 states [D]"),
    Below("regular languages", "NC¹", "composition of maps in a tree [K]"),
    Below(
        "PARITY", "word problem of S5", "ones become a transposition, zeros the identity [D]", "by a change of letters"
    ),
    Below("Dyck-1", "Dyck-2", "one of the two kinds [D]", "by a change of letters"),
    Below("Dyck-1", "SHUFFLE-DYCK-k", "k = 1 [D]"),
    Below("SHUFFLE-DYCK-k", "C-RASP", "no count of closing brackets is ever above that of opening ones [D]"),
    Below("MAJORITY", "C-RASP", "one comparison of counts [D]"),
    Below("MAJORITY", "FOC[MOD;+]", "one comparison of counts [D]"),
    Below("PARITY", "FOC[MOD;+]", "some x + x is the number of ones [D]"),
    Below("C-RASP", "C-RASP[MOD]", "by definition"),
    Below("C-RASP[MOD]", "TC⁰", "a comparison of counts is a threshold gate [D]"),
    Below("C-RASP", "LTL+C[Mon]", "counts of earlier positions are terms of it [K]"),
    Below("past-time temporal logic", "LTL+C[Mon]", "by definition"),
    Below("PARITY", "LTL+C[Mon]", "at some even position, the number of positions so far is that of all ones [D]"),
    Below("LTL+C[Mon]", "TC⁰", "Barceló et al. 2024 [S]"),
    Below("FOC[MOD;+]", "FOM[BIT]", "Chiang, Cholak & Pillay 2023 [S]"),
    Below("FOM[BIT]", "L-uniform TC⁰", "FO-uniform circuits are L-uniform [K]"),
    Below("L-uniform TC⁰", "TC⁰", "by definition"),
    Below("AC⁰", "ACC⁰", "by definition"),
    Below("ACC⁰", "TC⁰", "residues of counts from thresholds [K]"),
    Below("TC⁰", "NC¹", "thresholds have formulas of depth O(log n) [K]"),
    Below("NC¹", "TC¹", "by definition"),
    Below("FO-uniform TC¹", "TC¹", "by definition"),
    Below("TC¹", "P/poly", "circuits of polynomial size [D]"),
    Below("P", "P/poly", "by definition"),
    Below("P", "RE", "by definition"),
    Below("L-uniform TC⁰", "P", "circuits are made in logarithmic space, then evaluated [K]"),
    Below("FO-uniform TC¹", "P", "circuits are made in logarithmic space, then evaluated [K]"),
    Below("regular languages", "P", "an automaton reads the word once [D]"),
    Below("circuit value", "P", "gate by gate [D]"),
    Below("halting", "RE", "by definition"),
    Below("directed reachability", "TC¹", "squares of a matrix, log n times [D]"),
    Below("directed reachability", "P", "breadth first [D]"),
    Below("PARITY", "MAJORITY", "Furst, Saxe & Sipser 1984 [K]", "by an AC⁰ reduction"),
    Below(
        "MAJORITY",
        "Dyck-1",
        "for each number, pad the word to balance if it has so many ones [D]",
        "by an AC⁰ reduction",
    ),
    Below(
        "word problem of S5",
        "directed reachability",
        "paths through a node for each prefix and state [D]",
        "by an AC⁰ reduction",
    ),
    Below("word problem of S5", "circuit value", "circuits for NC¹ are circuits [D]", "by an AC⁰ reduction"),
)
