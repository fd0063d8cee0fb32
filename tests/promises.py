"""What tfm promises whoever kills it, fills the disk under it or feeds it garbage; each has tests that say so.

A test names its promise by `@pytest.mark.promise("killed")`, and what it counted by `record_property("kills", 20)`.
The table at the end of a run (`make test-faults`) has a line a promise: its cases, what was counted, and the outcome.

MEANINGS are what a figure means whatever it is of: `@pytest.mark.meaning("scores")`, `make test-meaning`.
"""

PROMISES = {
    "resume": "A training stopped, killed or failed at any moment and started again ends as one that never was",
    "ranks": "Several processes stop together, die together and resume together",
    "killed": "A stage killed at any write leaves the old artifact or the new one, and runs again to the same bytes",
    "failed": "A stage whose write, sync, rename or removal fails (disk full, file too large) leaves no damage",
    "place": "Where nothing can be written, that is said before any work",
    "damaged": "A file that was changed, cut, removed or added is refused by the stage that would read it",
    "mixed": "What does not belong together (tokenizer, dataset, model, format) is refused before any work",
    "writers": "One writer a folder: the other one is told who, and a dead one blocks nobody",
    "training": "Not finite, or too large for the memory: no weights are spoilt, and it is said what to do",
    "text": "Strange text keeps its alignment or is refused with file, line and byte, in bounded memory",
    "bytes": "Whatever bytes a reader is given, it never breaks and never misaligns",
    "recipe": "A wrong recipe is refused with file, key and what would be right",
    "pipe": "Whoever reads only the beginning of the output is not bothered with an error",
    "hostile": "An artifact made to harm is refused: nothing runs, nothing is written elsewhere, memory is bounded",
}

MEANINGS = {
    "references": "The plain code that figures are compared with gives what sacrebleu and rouge-score give",
    "scores": "Scores of ten scripts, in scores.json and as printed, are those of plain code over the same lines",
    "model": "Loss, perplexity, bits a character and greedy translations are those of a plain forward pass in float64",
    "counts": "Splits, dropped, overlap, unknowns, lengths, batches, updates and epochs are those counted again",
    "rates": "Each schedule's rate at each update is that of its formula, and the last update has its last rate",
    "labels": "Accuracy, macro F1 and figures a class are those of plain code, however labels are written",
    "relations": "What may not change a figure (name, place, order, case, seed) does not, and what may is said",
}
