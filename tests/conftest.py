"""Settings of every test: property tests have no time limit a case, since machines differ."""

from hypothesis import settings

settings.register_profile("tfm", deadline=None, max_examples=50)
settings.load_profile("tfm")
