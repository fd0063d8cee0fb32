"""`tfm search` at the command line: trials that are runs, limits, going on, what is kept, errors in a line or two."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.user import tfm
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import ComputationError, DataError, RecipeError
from tfm.pipeline.runtime.progress import Reporter

SPACE = """
[search.space]
"training.schedule.peak" = { values = [0.001, 0.01, 0.1] }
"model.norm" = { choices = ["pre", "post"] }
"""
QUICK = (
    *("--set", "training.validation.every_steps=5", "--set", "training.validation.bleu=false"),
    *("--set", "training.schedule.warmup_steps=5"),
)


def search(file: Path, head: str, space: str = SPACE) -> Path:
    file.write_text(f'[search]\nbase = "tiny.toml"\n{head}\n{space}', encoding="utf-8")
    return file


def trials_of(name: str) -> list[dict[str, object]]:
    found = json.loads(Path("runs", name, "search", "trials.json").read_text(encoding="utf-8"))
    trials: list[dict[str, object]] = found["trials"]
    return trials


@pytest.mark.slow
def test_a_search_goes_on_where_it_stopped_and_shares_what_it_can(recipe: Path) -> None:
    file = search(Path("some.toml"), 'method = "random"\ntrials = 2\nkeep = 2')
    done = tfm("search", file, *QUICK)
    assert done.code == 0, done.err
    first = trials_of("some")
    assert [each["ended"] for each in first] == ["finished", "finished"]
    search(file, 'method = "random"\ntrials = 4\nkeep = 2')
    more = tfm("search", file, *QUICK, "--json")
    assert more.code == 0, more.err
    trials = trials_of("some")
    assert json.loads(more.out)["trials"] == trials
    assert trials[:2] == first
    assert len(trials) == 4
    # a trial is a run with ordinary artifacts: the value is that of its model, by the recipe's own command
    best = min((each for each in trials if each["value"] is not None), key=lambda each: (each["value"], each["number"]))
    folder = Path("runs/some/trials", f"{best['number']:04}")
    if not str(best["reason"]).startswith("the same configuration"):
        assert open_artifact(folder / "model").figures["validation"]["loss"] == best["value"]  # type: ignore[index,call-overload]
    # one tokenizer and one dataset for all: later trials have other names of the same files
    logs = [file.read_text(encoding="utf-8") for file in sorted(Path("runs/some/trials").glob("*/log.txt"))]
    assert sum("dataset: copied from" in log for log in logs) == len([each for each in logs if each]) - 1
    whole = [each for each in sorted(Path("runs/some/trials").iterdir()) if (each / "model").exists()]
    assert 1 <= len(whole) <= 2
    assert not list(Path("runs/some/trials").glob("*/translations"))  # no test set was touched
    assert open_artifact(Path("runs/some/search")).stage == "search"
    for place in (("--workers", "3"), ("--cluster", "127.0.0.1:1")):  # it is over: nobody is started or asked
        again = tfm("search", file, *QUICK, *place)
        assert again.code == 0, again.err
        assert "the search is over: 4 trials" in again.err
        assert trials_of("some") == trials


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trials(recipe: Path) -> None:
    found = []
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        file = search(
            Path(f"{name}.toml"),
            f'method = "evolution"\ntrials = 4\nseed = {seed}\nevolution.population = 3\nevolution.survivors = 2',
        )
        assert tfm("search", file, *QUICK).code == 0
        keys = ("configuration", "value", "ended", "validations", "updates")
        found.append([{key: each[key] for key in keys} for each in trials_of(name)])
    assert found[0] == found[1] != found[2]


@pytest.mark.slow
def test_a_search_looks_at_a_score_of_texts_over_tokenizers(recipe: Path) -> None:
    space = '[search.space]\n"tokenizer.kind" = { choices = ["word", "char"] }\n'
    refused = tfm("search", search(Path("texts.toml"), 'method = "grid"', space), *QUICK)
    assert refused.code == 2
    assert 'search.metric = "bleu", or another score of texts' in refused.err
    head = 'method = "grid"\nmetric = "wer"\nkeep = 2'
    done = tfm("search", search(Path("texts.toml"), head, space), *QUICK, "--set", "training.max_steps=5")
    assert done.code == 0, done.err
    trials = trials_of("texts")
    assert [each["ended"] for each in trials] == ["finished", "finished"]
    for each in trials:
        validation = open_artifact(Path("runs/texts/trials", f"{each['number']:04}", "model")).figures["validation"]
        assert validation["scores"]["wer"]["score"] == each["value"]  # type: ignore[index,call-overload]


@pytest.mark.slow
def test_a_grid_tries_everything_and_what_is_impossible_is_a_result(recipe: Path) -> None:
    space = '[search.space]\n"model.encoder.heads" = { values = [1, 2, 3] }\n'
    done = tfm("search", search(Path("grid.toml"), 'method = "grid"', space), *QUICK)
    assert done.code == 0, done.err
    assert "grid: 3 configurations" in done.err
    ended = {each["configuration"]["model.encoder.heads"]: each["ended"] for each in trials_of("grid")}  # type: ignore[index]
    assert ended == {1: "finished", 2: "finished", 3: "impossible"}
    assert "impossible: model: encoder: heads (3) must divide dim (16)" in done.out


@pytest.mark.slow
def test_the_mean_over_seeds_counts_and_says_what_is_not_worse(recipe: Path) -> None:
    space = '[search.space]\n"training.schedule.peak" = { values = [0.0001, 0.02] }\n'
    file = search(Path("seeds.toml"), 'method = "grid"\nrepeats = 2\nmetric = "accuracy"', space)
    assert tfm("search", file, *QUICK).code == 0
    for each in trials_of("seeds"):
        values = each["values"]
        assert isinstance(values, list)
        assert len(values) == 2
        assert each["value"] == pytest.approx(sum(values) / 2)
    page = Path("runs/seeds/search/report.html").read_text(encoding="utf-8")
    assert "2 seeds each" in page
    assert re.search(r"(is|are)( not)? worse than it", page)


@pytest.mark.slow
def test_the_best_is_finished_and_its_tests_scored(recipe: Path) -> None:
    file = search(Path("last.toml"), 'method = "random"\ntrials = 2\nkeep = 1')
    assert tfm("search", file, *QUICK).code == 0
    done = tfm("search", file, *QUICK, "--final")
    assert done.code == 0, done.err
    assert (Path("runs/last-final/scores/scores.json")).exists()
    made = open_artifact(Path("runs/last-final/model")).figures["validation"]
    assert made["loss"] == min(each["value"] for each in trials_of("last"))  # type: ignore[index,call-overload,type-var]
    assert "training: continues" not in done.err  # the best trial's model was taken over, not trained again
    assert tfm("search", file, *QUICK, "--report").code == 0
    # the tests' own ledger, beside all runs, has one look; what is done is no other, and a new choice would be
    looked = [json.loads(line) for line in Path("runs/ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    chosen = f"final: loss {made['loss']:.4g} of validation, the best of 2 trials"  # type: ignore[index,call-overload]
    assert [(each["run"], each["chosen"]) for each in looked] == [("last-final", chosen)]
    assert tfm("search", file, *QUICK, "--final").code == 0
    # the model that was scored is there as long as another best one may not be scored
    scored = open_artifact(Path("runs/last-final/model")).fingerprint
    search(file, 'method = "random"\ntrials = 9\nkeep = 1')
    assert tfm("search", file, *QUICK).code == 0
    assert min(each["value"] for each in trials_of("last")) < made["loss"]  # type: ignore[type-var,index,call-overload,operator]
    refused = tfm("search", file, *QUICK, "--final")
    assert (refused.code, "was already scored once with --final" in refused.err) == (2, True)
    assert open_artifact(Path("runs/last-final/model")).fingerprint == scored
    assert not Path("runs/last-final/training.old-1").exists()
    Path("runs/last-final").rename("moved")
    refused = tfm("search", file, *QUICK, "--final")
    assert refused.code == 2
    assert "was already scored once with --final" in refused.err
    assert tfm("search", file, *QUICK, "--final", "--again").code == 0
    assert tfm("search", file, *QUICK, "--report", "--final").code == 2
    assert tfm("search", file, *QUICK, "--again").code == 2
    for more in (("--report", "--workers", "2"), ("--final", "--cluster", "auto")):
        refused = tfm("search", file, *QUICK, *more)
        assert (refused.code, f"has no effect with {more[0]}" in refused.err) == (2, True), refused.err


@pytest.mark.slow
@pytest.mark.parametrize("head", ["folds = 2", "folds = 2\nrepeats = 2", ""])
def test_tests_that_are_used_up_are_refused_before_the_final_training(recipe: Path, head: str) -> None:
    """A second search of the same tests has a model to train for --final: all folds, or a trial that lost its own."""
    short = (*QUICK, "--set", "training.max_steps=5")
    for seed, name in enumerate(("one", "two")):
        file = search(Path(f"{name}.toml"), f'method = "random"\ntrials = 1\nseed = {seed}\n{head}')
        assert tfm("search", file, *short).code == 0
        done = tfm("search", file, *short, "--final")
        if name == "one":
            assert done.code == 0, done.err
            assert tfm("search", file, *short, "--final").code == 0  # its own look is no second one
    assert done.code == 2
    assert "main was already scored once with --final" in done.err
    assert list(Path("runs").glob("two-final*/dataset"))
    assert "train" not in {line.partition("] ")[2] for line in done.err.splitlines()}
    if head:  # else the model is the trial's
        assert not list(Path("runs").glob("two-final*/training"))
        assert not list(Path("runs").glob("two-final*/model"))
    done = tfm("search", file, *short, "--final", "--again")
    assert done.code == 0, done.err
    assert list(Path("runs").glob("two-final*/model"))


@pytest.mark.slow
def test_all_seeds_of_the_best_are_finished_and_their_tests_are_one_look(recipe: Path) -> None:
    file = search(Path("seeds.toml"), 'method = "random"\ntrials = 2\nkeep = 1\nrepeats = 2\nseed = 3')
    assert tfm("search", file, *QUICK).code == 0
    done = tfm("search", file, *QUICK, "--final")
    assert done.code == 0, done.err
    best = min(trials_of("seeds"), key=lambda each: float(str(each["value"])))
    runs = sorted(each.name for each in Path("runs").glob("seeds-final*"))
    assert runs == ["seeds-final-1", "seeds-final-2"]
    made = [open_artifact(Path("runs", each, "model")) for each in runs]
    assert [each.seed for each in made] == [1, 2]
    assert [each.figures["validation"]["loss"] for each in made] == best["values"]  # type: ignore[index,call-overload]
    assert "training: continues" not in done.err
    looked = [json.loads(line) for line in Path("runs/ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [each["chosen"].startswith("final: loss ") for each in looked] == [True]
    for each in runs:
        assert Path("runs", each, "scores/scores.json").exists()
    assert "±" in done.out
    assert tfm("search", file, *QUICK, "--final").code == 0  # done, and no second look
    assert len(Path("runs/ledger.jsonl").read_text(encoding="utf-8").splitlines()) == 1
    search(file, 'method = "random"\ntrials = 8\nkeep = 1\nrepeats = 2\nseed = 3')
    assert tfm("search", file, *QUICK).code == 0
    if min(float(str(each["value"])) for each in trials_of("seeds")) < float(str(best["value"])):
        assert tfm("search", file, *QUICK, "--final").code == 2


def test_a_key_of_the_only_corpus_needs_no_number(recipe: Path) -> None:
    file = search(
        Path("weights.toml"), 'method = "grid"', '[search.space]\n"data.train.weight" = { values = [1, 2] }\n'
    )
    done = tfm("search", file, *QUICK)
    assert done.code == 0, done.err
    assert [each["ended"] for each in trials_of("weights")] == ["finished", "finished"]


@pytest.mark.parametrize(
    ("space", "problem"),
    [
        ('"training" = { values = [1, 2] }', '; vary a key of it, such as "training.max_steps"'),
        ('"training" = { values = [1, 2] }', "training = 1 must be a table of keys: max_steps, max_epochs, "),
        ('"model.encoder" = { values = [1, 2] }', 'vary a key of it, such as "model.encoder.layers"'),
        ('"model.dropout" = { low = 0.0, high = 0.3 }', "feed_forward, depth; vary a key of it"),
        ('"model.headz" = { values = [1] }', 'search.space."model.headz" is not a key of recipes'),
        ('"training.optimizer.beta.1" = { values = [0.9] }', '"training.optimizer.beta.1" is not a key of recipes'),
        (
            "model.dropout.depth = { low = 0.0, high = 0.5 }",
            'search.space: write "model.dropout.depth" in quotation marks',
        ),
        ('"data.train.0" = { values = [1, 2] }', "data.train.0 = 1 must be a table of keys: format, path, "),
        ('"data.train.1.weight" = { values = [1] }', "data.train has one item, 0 in the base recipe, and not 1"),
        ('"model.0.norm" = { choices = ["pre"] }', '"model.0.norm" is not a key of recipes: no list has an item there'),
        ('"model.nowhere.norm" = { choices = ["pre"] }', '"model.nowhere.norm" is not a key of recipes'),
        ('"training.optimizer.betas.1" = { values = ["x"] }', 'training.optimizer.betas.1 = "x" must be a number'),
        ('"training.optimizer.betas.0" = { low = 1.5, high = 2.5 }', "betas.0 = 1.81 must be less than 1"),
        ('"training.optimizer.betas.2" = { values = [0.9] }', "betas has items 0 to 1 in the base recipe, and not 2"),
        ('"training.optimizer.betas.01" = { values = [0.9] }', "betas has items 0 to 1 in the base recipe, and not 01"),
        ('"model.encoder.layers.0" = { values = [1] }', '"model.encoder.layers.0" is not a key of recipes: no list'),
        ('"training.max_steps.1" = { values = [1] }', '"training.max_steps.1" is not a key of recipes: no list has'),
        ('"model.norm" = { choice = ["pre"] }', "search.space.model.norm.choice is not a key of recipes"),
        ('"seed" = { values = [1, 2] }', 'search.space."seed" cannot be varied: use search.seed and search.repeats'),
        ('"data.path" = { choices = ["a"] }', "figures of different texts do not compare"),
        ('"tokenizer.vocab_size" = { values = [40, 80] }', "with another vocabulary the loss is by other pieces"),
        ('"decoding.beam" = { values = [1, 2] }', "has no effect on the loss of validation"),
        ('"training.validation.every_steps" = { values = [1, 2] }', "it decides what is validated, and when"),
        ('"data.limits.max_length" = { values = [9, 99] }', "it decides which validation texts count"),
        ('"model.block" = { values = [16, 32] }', "cannot be varied: the figures of validation would be of other"),
        ('"model.word_vectors.negatives" = { values = [1, 5] }', "would be of other predictions"),
        ('"data.running_text" = { values = [true, false] }', "cannot be varied: it decides which texts are for"),
        ('"synthesis.noise.delete" = { values = [0.1] }', "cannot be varied: it is of text that a model makes after"),
        ('"training.restarts" = { values = [1, 2] }', "cannot be varied: it does not change what is learned"),
        (
            '"training.save_every" = { values = [1, 2] }',
            'cannot be varied without training.keep.average = "last": it does not change what is learned',
        ),
        (
            '"data.train.0.weight" = { values = [1, 2] }\n"data.train.weight" = { values = [3] }',
            'search.space: "data.train.0.weight" and "data.train.weight" are one key of the recipe: remove one',
        ),
        (
            '"clean.ratio" = { choices = ["none"] }\n"clean.ratio.max" = { values = [3, 9] }',
            'search.space: "clean.ratio" is a table that has "clean.ratio.max", which sets it anyway: remove one',
        ),
        (
            '"training.optimizer.betas" = { choices = [[0.9, 0.98], [0.9, 0.99]] }',
            "betas.choices: 0: [0.9, 0.98] must be a number, a text, true or false; an item of a list is varied by",
        ),
        ('"evaluation.samples" = { values = [1, 2] }', "cannot be varied: it says how the tests are scored"),
        (
            '"model.encoder.layers" = { low = 1, high = 4 }',
            "bad.toml: search.space: model.encoder.layers = 1.93 must be a whole number; without step or factor any",
        ),
        ('"model.encoder.layers" = { values = ["1", "2"] }', 'model.encoder.layers = "1" must be a whole number'),
        (
            '"model.dropout.residual" = { low = 2, high = 4, step = 1 }',
            "model.dropout.residual = 2 must be less than 1",
        ),
        ('"model.norm" = { choices = ["Pre", "Post"] }', 'model.norm = "Pre" is not allowed'),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_runs(recipe: Path, space: str, problem: str) -> None:
    done = tfm("search", search(Path("bad.toml"), "trials = 2", f"[search.space]\n{space}\n"))
    assert done.code == 2
    assert problem in done.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("head", "space", "settings", "problem"),
    [
        ('metric = "bleu"', '"decoding.beam" = { values = [1] }', (), "which uses training.validation"),
        ("", '"training.device" = { choices = ["cpu"] }', (), "cannot be varied: it does not change what is learned"),
        (
            'metric = "bleu"',
            '"seed" = { values = [1] }',
            QUICK,
            'search.metric = "bleu" needs training.validation.bleu',
        ),
        (
            'metric = "loss"',
            '"model.architecture" = { choices = ["skip_gram", "cbow"] }',
            ("--set", "model.architecture=skip_gram", "--set", "model.task=word_vectors"),
            "cannot be varied: the figures of validation would be of other predictions",
        ),
        (
            'metric = "perplexity"',
            '"model.word_vectors.subsample" = { values = [0.01] }',
            (
                "--set",
                "model.architecture=skip_gram",
                "--set",
                "model.task=word_vectors",
                "--set",
                "model.word_vectors.negatives=2",
            ),
            "negative sampling has a loss, but no perplexity",
        ),
    ],
)
def test_what_would_have_no_effect_or_no_figure_is_refused(
    recipe: Path, head: str, space: str, settings: tuple[str, ...], problem: str
) -> None:
    done = tfm("search", search(Path("bad.toml"), f"trials = 2\n{head}", f"[search.space]\n{space}\n"), *settings)
    assert done.code == 2
    assert problem in done.err
    assert not Path("runs").exists()


def test_beside_a_run_no_search_begins(recipe: Path) -> None:
    Path("runs/tiny/dataset").mkdir(parents=True)
    done = tfm("search", search(Path("tiny-search.toml"), 'name = "tiny"\ntrials = 2'))
    assert done.code == 73
    assert "runs/tiny: holds a run (dataset); give the search another name (search.name)" in done.err
    assert [each.name for each in Path("runs/tiny").iterdir()] == ["dataset"]


def test_what_training_finds_out_is_a_result(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that cannot be built, and one that has learned for a while."""
    space = '[search.space]\n"training.clip_norm" = { values = [1, 2] }\n'
    file = search(Path("late.toml"), 'method = "grid"', space)
    errors = iter((RecipeError("tie: one vocabulary\nis needed"), ComputationError("loss was not finite")))

    def fails(*_: object, reporter: Reporter, **__: object) -> None:
        with reporter.bar("training", 10, "steps") as bar:
            bar.advance(3)
            raise next(errors)

    monkeypatch.setattr("tfm.pipeline.tuning.trial.train", fails)
    assert tfm("search", file, *QUICK).code == 0
    found = [(each["ended"], each["reason"], each["updates"]) for each in trials_of("late")]
    assert found == [("impossible", "tie: one vocabulary", 3), ("failed", "loss was not finite", 3)]
    assert all(float(str(each["seconds"])) > 0 for each in trials_of("late"))


@pytest.mark.parametrize("key", ["training.clip_norm", "data.batch_tokens"])
def test_a_file_that_training_cannot_read_is_no_result(recipe: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """The search ends, and the same command goes on with that trial when the file is there again."""
    file = search(Path("torn.toml"), 'method = "grid"', f'[search.space]\n"{key}" = {{ values = [100, 200] }}\n')

    def fails(*_: object, **__: object) -> None:
        raise DataError("is damaged", file=Path("model.safetensors"))

    monkeypatch.setattr("tfm.pipeline.tuning.trial.train", fails)
    done = tfm("search", file, *QUICK)
    assert done.code == 65
    assert "model.safetensors: is damaged" in done.err
    reported = json.loads(tfm("search", file, *QUICK, "--report", "--json").out)
    assert [each["ended"] for each in reported["trials"]] == ["running", "waiting"]


def test_a_name_that_is_no_folder_says_whose_it_is(recipe: Path) -> None:
    for name in ("my search", "häuser"):
        done = tfm("search", search(Path(f"{name}.toml"), "trials = 2"))
        assert done.code == 2
        assert f"search.name: '{name}' becomes the name of a folder, and is the file's where" in done.err


def test_a_device_that_is_not_there_is_no_result(recipe: Path) -> None:
    file = search(Path("here.toml"), "trials = 2")
    done = tfm("search", file, *QUICK, "--set", "training.device=mps")
    assert done.code == 2
    assert 'device "mps" is not available here' in done.err
    assert not Path("runs/here/search").exists()


def test_a_window_needs_an_order(recipe: Path) -> None:
    done = tfm("search", search(Path("bad.toml"), 'method = "window"\ntrials = 2'))
    assert done.code == 2
    assert "model.norm has choices without order" in done.err


def test_another_search_of_the_same_name_is_told_apart(recipe: Path) -> None:
    file = search(Path("mine.toml"), "trials = 1")
    assert tfm("search", file, *QUICK).code == 0
    search(file, "trials = 1\nseed = 2")
    done = tfm("search", file, *QUICK)
    assert done.code == 65
    assert "runs/mine: holds the trials of another search, which differs in seed" in done.err


@pytest.mark.parametrize("key", ["training.clip_norm", "data.batch_tokens", "data.train.weight", "tokenizer.kind"])
def test_a_missing_corpus_is_an_error_and_no_result(recipe: Path, key: str) -> None:
    values = '["word", "char"]' if key == "tokenizer.kind" else "[100, 200]"
    space = f'[search.space]\n"{key}" = {{ values = {values} }}\n'
    file = search(Path("gone.toml"), 'trials = 3\nmetric = "wer"', space)
    done = tfm("search", file, *QUICK, "--set", "data.train.source=nowhere.txt")
    assert done.code == 65
    assert "nowhere.txt" in done.err
    assert not any(each["ended"] in ("failed", "impossible") for each in _trials_in(file))


def test_a_search_that_never_trained_goes_on_after_its_mistake_is_mended(recipe: Path) -> None:
    file = search(Path("mended.toml"), "trials = 1")
    assert tfm("search", file, *QUICK, "--set", "data.train.source=nowhere.txt").code == 65
    done = tfm("search", file, *QUICK, "--json")
    assert done.code == 0, done.err
    assert [each["number"] for each in json.loads(done.out)["trials"]] == [0]


def _trials_in(file: Path) -> list[dict[str, object]]:
    done = tfm("search", file, *QUICK, "--set", "data.train.source=nowhere.txt", "--report", "--json")
    found: list[dict[str, object]] = json.loads(done.out)["trials"]
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["valid.de", "train.en"])
def test_a_search_does_not_go_on_over_other_contents(recipe: Path, corpora: Path, name: str, tmp_path: Path) -> None:
    """A file is rewritten between two calls, with its size and its time: no trial of both is ranked."""
    for each in corpora.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    recipe.write_text(recipe.read_text("utf-8").replace(str(corpora), str(tmp_path)), "utf-8")
    file = search(Path("some.toml"), 'method = "random"\ntrials = 1\nkeep = 1')
    assert tfm("search", file, *QUICK).code == 0
    search(file, 'method = "random"\ntrials = 2\nkeep = 1')
    changed = tmp_path / name
    status, data = changed.stat(), changed.read_bytes()
    words = data.split(b"\n", 1)
    changed.write_bytes(b"\n".join([words[0][::-1], words[1]]))
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
    for more in ((), ("--final",)):
        refused = tfm("search", file, *more, *QUICK)
        assert refused.code == 65, refused
        assert name in refused.err
        assert "was changed since this search began" in refused.err
    assert tfm("search", file, "--report", *QUICK).code == 0
    changed.write_bytes(data)
    done = tfm("search", file, *QUICK)
    assert done.code == 0, done.err
    assert [each["ended"] for each in trials_of("some")] == ["finished", "finished"]


@pytest.mark.few(1)
@pytest.mark.parametrize("key", ["data.batch_tokens", "tokenizer.vocab_size"])
def test_trials_that_differ_in_how_texts_are_read_are_of_the_same_texts(
    recipe: Path, corpora: Path, key: str, tmp_path: Path
) -> None:
    for each in corpora.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    recipe.write_text(recipe.read_text("utf-8").replace(str(corpora), str(tmp_path)), "utf-8")
    head, space = 'method = "grid"\nmetric = "wer"\n', f"[search.space]\n{key!r} = {{ choices = [50, 60] }}\n"
    assert tfm("search", search(Path("some.toml"), f"{head}trials = 1", space), *QUICK).code == 0
    changed = tmp_path / "valid.de"
    changed.write_text(changed.read_text("utf-8")[::-1].strip() + "\n", "utf-8")
    refused = tfm("search", search(Path("some.toml"), f"{head}trials = 2", space), *QUICK)
    assert refused.code == 65, refused
    assert "valid.de was changed since this search began" in refused.err


@pytest.mark.few(1)
@pytest.mark.parametrize("first", [False, True])
def test_a_search_does_not_go_on_with_validation_data_that_come_or_go(
    recipe: Path, corpora: Path, first: bool, tmp_path: Path
) -> None:
    """A folder with validation data has other ones without them: a part of the training data."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for each in corpora.iterdir():
        (folder / each.name).write_bytes(each.read_bytes())
    valid = [folder / f"valid.{side}" for side in ("en", "de")]
    content = [each.read_bytes() for each in valid]
    head = recipe.read_text("utf-8").split("[data]")[0]
    base = f'{head}[data]\npath = "{folder}"\nsource = "en"\ntarget = "de"\nratios = [0.6, 0.2, 0.2]\n'
    recipe.write_text(base + recipe.read_text("utf-8")[recipe.read_text("utf-8").index("[model]") :], "utf-8")

    def place_valid(there: bool) -> None:
        for file, data in zip(valid, content, strict=True):
            if there:
                file.write_bytes(data)
            else:
                file.unlink(missing_ok=True)

    place_valid(first)
    done = tfm("search", search(Path("some.toml"), 'method = "random"\ntrials = 1'), *QUICK)
    assert done.code == 0, done.err
    place_valid(not first)
    search(Path("some.toml"), 'method = "random"\ntrials = 2')
    refused = tfm("search", Path("some.toml"), *QUICK)
    assert refused.code == 65, refused
    before, now = ("valid", "train") if first else ("train", "valid")
    changed = rf"list of corpora was changed \(without valid: \S+{before}\.de, with valid: \S+{now}\.de\) since"
    assert re.search(changed, refused.err)


def test_a_report_before_the_first_trial_writes_nothing_and_fixes_nothing(recipe: Path) -> None:
    file = search(Path("some.toml"), 'method = "random"\ntrials = 1\nseed = 1')
    for words in (("--report",), ("--report", "--json"), ("--report", "--storage", "sqlite:///x.db")):
        done = tfm("search", file, *QUICK, *words)
        assert done.code == 0, done.err
        assert "runs/some: has no trial yet, so that no report is written" in done.err
    refused = tfm("search", file, *QUICK, "--final")
    assert refused.code == 65
    assert "no trial is finished" in refused.err
    assert not Path("runs").exists()
    assert not Path("x.db").exists()
    search(file, 'method = "grid"\nseed = 2', SPACE)  # another search by that name
    assert tfm("search", file, *QUICK, "--report").code == 0
