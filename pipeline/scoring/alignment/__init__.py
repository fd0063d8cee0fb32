"""Which word of a source each word of a target is the translation of, read from a model's cross-attention."""
