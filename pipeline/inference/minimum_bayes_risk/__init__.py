"""Minimum Bayes risk: of several translations of a line the one that is most like the others."""
