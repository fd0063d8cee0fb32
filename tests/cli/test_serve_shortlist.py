"""`tfm serve` of a model with a shortlist: the answers of `tfm translate`, and a shortlist that is made anew."""

import json
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import Stages, tfm
from tests.serving import Server, running_server, wait_until

pytestmark = pytest.mark.slow  # its processes compile the search; tests/unit/pipeline/serving has what is quick

LINES = ["eins zwei drei", "vier", "sechs fünf eins eins"]
FIELDS = {"q": "\n".join(LINES), "source": "de", "target": "en"}
SHORTLIST = ("--set", "decoding.shortlist=short")


@pytest.fixture
def folder(stages: Stages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run, and the links of its training pairs."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(stages.folder, "mine", symlinks=True)
    Path("links.txt").write_text(tfm("align", "mine", "mine/dataset").out, "utf-8")
    return tmp_path


def make_shortlist(*words: str) -> None:
    made = tfm("shortlist", "mine", "--links", "links.txt", "--out", "short", *words)
    assert made.code == 0, made.err


def translate(*words: str) -> list[list[str]]:
    """All translations of each line, by `tfm translate`."""
    done = tfm("translate", "mine", "-", "--jsonl", *words, stdin="\n".join(LINES) + "\n")
    assert done.code == 0, done.err
    return [[each["text"] for each in json.loads(line)["translations"]] for line in done.out.splitlines()]


def best_of(found: list[list[str]]) -> str:
    return "\n".join(each[0] for each in found)


def fingerprint_of_shortlist(server: Server) -> str:
    (model,) = server.ask("/v1/models")[1]["data"]
    return str(model["shortlist"])


def test_without_torch_answers_are_of_the_pieces_of_a_shortlist_too(folder: Path) -> None:
    make_shortlist("--linked", "1", "--frequent", "1")
    options = ("--shortlist", "mine=short", "--languages", "mine=de:en", "--numpy")
    with running_server("mine", *options, folder=folder) as server:
        wanted = best_of(translate(*SHORTLIST, "--beam", "5"))
        assert server.ask("/translate", {**FIELDS, "beam": 5}) == (200, {"translatedText": wanted})
        assert wanted != best_of(translate())


def test_answers_are_those_of_tfm_translate_and_of_one_shortlist_each(folder: Path) -> None:
    make_shortlist("--linked", "1", "--frequent", "1")
    options = ("--shortlist", "mine=short", "--languages", "mine=de:en", "--no-cache", "--workers", "2")
    with running_server("mine", *options, folder=folder) as server:
        first = {beam: translate(*SHORTLIST, "--beam", str(beam)) for beam in (1, 5)}
        for beam, found in first.items():
            assert server.ask("/translate", {**FIELDS, "beam": beam})[1]["translatedText"] == best_of(found)
        assert best_of(first[5]) != best_of(translate()), "the shortlist has an effect"
        ranked = translate(*SHORTLIST, "--n-best", "3")
        for line, wanted in zip(LINES, ranked, strict=True):
            answer = server.ask("/translate", {**FIELDS, "q": line, "alternatives": 2})[1]
            assert [answer["translatedText"], *answer["alternatives"]] == [*dict.fromkeys(wanted)]
        answer = server.ask("/translate", {**FIELDS, "q": "eins zwei", "glossary": {"zwei": "six"}})[1]
        assert "six" in answer["translatedText"].split(), "which the shortlist does not have for zwei"
        assert server.ask("/v1/attend", {"text": "eins zwei drei"})[1]["target"] == first[5][0][0]

        before, answers, is_done = fingerprint_of_shortlist(server), set[Any](), threading.Event()

        def ask_again() -> None:
            while not is_done.is_set():
                status, answer = server.ask("/translate", FIELDS)
                answers.add((status, answer.get("translatedText")))

        asking = threading.Thread(target=ask_again)
        asking.start()
        make_shortlist("--linked", "50", "--frequent", "50")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: fingerprint_of_shortlist(server) != before)
        second = best_of(translate(*SHORTLIST))
        assert server.ask("/translate", FIELDS) == (200, {"translatedText": second})
        is_done.set()
        asking.join()
    assert second != best_of(first[5])
    assert answers == {(200, best_of(first[5])), (200, second)}
    assert f"with the shortlist {folder / 'short'}" in (folder / "serve.log").read_text("utf-8")


def test_a_shortlist_that_cannot_be_served_is_said(folder: Path) -> None:
    make_shortlist()
    for words, code, said in (
        (("--shortlist", "other=short"), 2, "--shortlist other: there is no model of this name; there is mine"),
        (("--shortlist", "mine=nowhere"), 65, "nowhere: there is nothing here"),
    ):
        done = tfm("serve", "mine", *words)
        assert (done.code, said in done.err) == (code, True), (words, done.err)
