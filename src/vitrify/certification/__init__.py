"""Verify that a network computes its spec: exhaustive and sampled checks, proofs, counterexamples, mutation tests."""

from vitrify.certification.checking import certify, net_check
from vitrify.certification.evidence import Criterion, Domain, Evidence, Link, Method, Quantity, Scope, combine
from vitrify.certification.mutation_test import MutationTest, mutants, mutation_test

__all__ = ["Criterion", "Domain", "Evidence", "Link", "Method", "MutationTest", "Quantity", "Scope", "certify"]
__all__ += ["combine", "mutants", "mutation_test", "net_check"]
