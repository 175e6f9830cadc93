"""Estimates with 95 % intervals over units of replication: means, bootstraps, censored crossings, slopes, survival.

A *unit of replication* is what is drawn independently: a grammar, a graph, a seed. Average within a unit first, and
give these functions one value or one row per unit. An estimate that its units do not determine has NaN ends: neither
`contains` nor `above` nor `below` is then true, so the statement about it is undecided. Random draws come from a fixed
seed: the same input gives the same bits.
"""
