"""The words, phrases, clauses and constructions of the built-in English-German corpus (data/synthetic/grammar.py)."""
