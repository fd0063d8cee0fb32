"""The memory of stages: the text, the recipes, what is watched, and what a line adds."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.memory.command import bytes_a_line, chain_until, table_rows
from bench.memory.recipes import RECIPES
from bench.memory.stages import Stage, measure_stage, stages_of, write_recipes
from bench.memory.text import FILES, draw_lines, make_word, write_text
from bench.processes import MIB, AnonymousMemory, run
from tfm.pipeline.recipes.recipe import load_recipe


def test_text_has_more_different_words_the_longer_it_is(tmp_path: Path) -> None:
    ranks = [np.concatenate(draw_lines(np.random.default_rng(1), count)) for count in (1_000, 10_000)]
    words = [len(set(each.tolist())) for each in ranks]
    assert words[1] > 3 * words[0]
    assert len(ranks[1]) == pytest.approx(100_000, rel=0.02)
    assert len({make_word(rank) for rank in range(10_000)}) == 10_000
    write_text(tmp_path, "train", 30, 1)
    lines = {name: (tmp_path / f"train.{name}").read_text().splitlines() for name in FILES}
    assert {len(each) for each in lines.values()} == {30}
    for source, target, labelled, tags, prompt in zip(*lines.values(), strict=True):
        assert len(source.split()) == len(target.split()) == len(tags.split())
        assert labelled.partition(" ")[2] == source
        assert source.split()[0] == prompt


def test_recipes_are_of_their_tasks_and_stages_read_them(tmp_path: Path) -> None:
    write_recipes(tmp_path, 3)
    for task in RECIPES:
        recipe = load_recipe(tmp_path / f"{task}.toml", [])
        assert (recipe.model.task, recipe.training.max_steps) == (task, 3)
        names = [stage.name for stage in stages_of(task)]
        of_training = [name for name in names if not name.startswith("clean")][:3]
        assert of_training == ["tokenize", "preprocess", "train"]
    chain = [each.name for each in chain_until(stages_of("translation"), "tokenize")]
    assert chain == ["clean", "clean-near", "tokenize"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")
def test_memory_that_no_file_has_is_watched_until_the_end() -> None:
    program = "import time; held = b'1' * 10**8; time.sleep(1)"
    watched: list[AnonymousMemory] = []

    def watch(process: int) -> None:
        watched.append(AnonymousMemory(process))
        watched[0].start()

    done = run([sys.executable, "-c", program], on_start=watch)
    watched[0].join(5)
    assert not watched[0].is_alive()
    assert watched[0].peak <= done.peak
    assert 10**8 < watched[0].peak < 10**8 + 50 * MIB


def test_a_stage_is_a_process_that_may_read_a_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a line\n")
    figures = measure_stage(Stage("version", ("--version",), stdin="text"), tmp_path)
    assert figures["peak"] > 10 * MIB
    assert figures["seconds"] > 0


def test_a_row_says_what_each_line_adds_between_the_largest_sizes() -> None:
    sizes = [(10, 5 * MIB), (100, 6 * MIB), (1_124, 7 * MIB)]
    found = [
        {"stage": "train", "task": "word_vectors", "lines": lines, "peak": peak, "anonymous": 3 * MIB}
        for lines, peak in sizes
    ]
    assert bytes_a_line(found, "peak") == 1_024
    assert list(table_rows(found, [10, 100, 1_124])) == [["train", "word vectors", "5", "6", "7", "1,024", "0"]]
    assert list(table_rows(found[:1], [10])) == [["train", "word vectors", "5"]]


@pytest.mark.slow
@pytest.mark.parametrize("task", RECIPES)
def test_every_stage_of_a_task_is_measured(task: str, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    words = ["--task", task, "--lines", "200", "--updates", "2", "--folder", str(tmp_path), "--json", str(file)]
    done = CliRunner().invoke(app, ["memory", *words])
    assert done.exit_code == 0, done.output
    found = json.loads(file.read_text())["found"]
    assert [each["stage"] for each in found] == [stage.name for stage in stages_of(task)]
    assert all(each["peak"] > 20 * MIB for each in found)
