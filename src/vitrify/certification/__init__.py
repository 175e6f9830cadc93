"""Verify that a network computes its spec: exhaustive and sampled checks, proofs, counterexamples, mutation tests."""

from vitrify.certification.checking import certify, net_check
from vitrify.certification.evidence import Criterion, Domain, Evidence, Method, Quantity, combine
from vitrify.certification.mutation_test import MutationTest, mutants, mutation_test

__all__ = ["Criterion", "Domain", "Evidence", "Method", "MutationTest", "Quantity", "certify", "combine", "mutants"]
__all__ += ["mutation_test", "net_check"]
