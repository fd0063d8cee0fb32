"""What tfm guarantees when it is killed, the disk is full or the input is garbage; each guarantee has tests.

A test names its promise by `@pytest.mark.promise("killed")`, and what it counted by `record_property("kills", 20)`.
The table at the end of a run (`make test-faults`) has a line for each promise: cases, counts and outcome.

MEANINGS are what figures must agree with: `@pytest.mark.meaning("scores")`, `make test-meaning`.
"""

PROMISES = {
    "resume": "A training stopped, killed or failed at any moment and resumed ends like an uninterrupted one",
    "ranks": "Several processes stop together, die together and resume together",
    "killed": "A stage killed at any write leaves the old artifact or the new one, and runs again to the same bytes",
    "failed": "A stage whose write, sync, rename or removal fails (disk full, file too large) leaves no damage",
    "search": "A search whose workers are killed loses updates since a checkpoint alone, and runs no trial twice",
    "place": "A place that cannot be written to is reported before any work",
    "damaged": "A file changed, truncated, removed or added is detected by the stage that would read it",
    "mixed": "Artifacts that do not belong together (tokenizer, dataset, model, format) are rejected before any work",
    "writers": "One writer per folder: a second one is told which process, and a dead process blocks nobody",
    "training": "Losses that are not finite or batches too large for memory leave the weights intact, with advice",
    "text": "Unusual text keeps its alignment or is rejected with file, line and byte, in bounded memory",
    "bytes": "No input bytes make a reader crash or misalign lines",
    "recipe": "A wrong recipe is rejected with file, key and the allowed values",
    "pipe": "Reading only the beginning of the output causes no error",
    "arguments": "Any argument of any command ends in an exit code and a line or two, without traceback, hang or child",
    "hostile": "A malicious artifact is rejected: nothing is executed, nothing is written elsewhere, memory is bounded",
}

MEANINGS = {
    "references": "The reference code that figures are compared with agrees with sacrebleu and rouge-score",
    "scores": "Scores in ten scripts, in scores.json and as printed, agree with reference code on the same lines",
    "model": "Loss, perplexity, bits a character and greedy translations agree with a plain forward pass in float64",
    "counts": "Splits, dropped, overlap, unknowns, lengths, batches, updates and epochs agree with a second count",
    "rates": "Each schedule's rate at each update follows its formula, and the last update has its final rate",
    "labels": "Accuracy, macro F1 and figures of each class agree with reference code, for any spelling of labels",
    "relations": "What must not change a figure (name, place, order, case, seed) does not, and what may is reported",
}
