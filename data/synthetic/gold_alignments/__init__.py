"""Gold alignments of the built-in corpus: which word of a sentence is the translation of which, by the grammar."""
