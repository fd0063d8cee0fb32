"""The built-in corpus `scenes`: drawn shapes with captions."""
