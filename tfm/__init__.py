"""tfm: from raw text to a trained Transformer and a score one can trust.

The packages stand at the top of the repository; the links beside this file make them `tfm.model`, `tfm.data`, ...
"""
