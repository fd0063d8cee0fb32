"""External metrics: what goes in and comes out, and that whatever a command does costs its metric alone."""

import json
import math
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import ValidationError

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.external_metric import ExternalMetric, missing_command_warnings
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.metrics.external.command import run_command
from tfm.pipeline.scoring.metrics.external.scores import command_files, external_scores, external_signature
from tfm.pipeline.scoring.metrics.score import lower_is_better

# a start of python costs 20 ms without its site packages
PYTHON = (sys.executable, "-I", "-S", "-c")
LENGTHS = "import json, sys\nfor line in sys.stdin:\n    print(len(json.loads(line)['hypothesis']) / 3)"
TEXTS = ["ein Hund", "", "כלב רץ", "猫\u2028坐", "DALLAS", 'a "b" \\ \x07\x85', "ﬁ😀"]
SEGMENTS = TEXTS[::-1], TEXTS, [["a"] * 7, ["", "b", "", "", "", "", ""]]


class Heard(NullReporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def metric(code: str, *, limit: float = 20, name: str = "length", **more: object) -> ExternalMetric:
    return ExternalMetric(name=name, command=(*PYTHON, code), limit=limit, **more)  # type: ignore[arg-type]


def failure(code: str, *, limit: float = 20) -> str:
    """Why a command gives no score; another metric beside it has one all the same."""
    heard = Heard()
    found = external_scores([metric(code, limit=limit, name="bad"), metric(LENGTHS)], "test", *SEGMENTS, heard)
    assert list(found.scores) == list(found.numbers) == ["length"]
    assert heard.warnings == [f"test: bad {found.missing['bad']}"]
    return found.missing["bad"]


def test_numbers_are_those_of_the_segments_in_their_order() -> None:
    found = external_scores([metric(LENGTHS)], "test", *SEGMENTS, NullReporter())
    lengths = [len(text) / 3 for text in TEXTS]
    assert list(found.numbers["length"]) == lengths
    assert found.scores["length"].score == math.fsum(lengths) / len(lengths)
    assert found.missing == {}


def test_what_a_command_reads_is_one_json_object_a_line(tmp_path: Path) -> None:
    file = tmp_path / "read"
    code = f"import sys\nopen({str(file)!r}, 'wb').write(sys.stdin.buffer.read())\nprint('1\\n' * 7, end='')"
    run_command(metric(code), *SEGMENTS, lambda more: None)
    assert file.read_bytes().isascii()
    entries = [json.loads(line) for line in file.read_bytes().splitlines()]
    expected = zip(TEXTS[::-1], TEXTS, [["a"], ["a", "b"], *[["a"]] * 5], strict=True)
    assert entries == [{"source": a, "hypothesis": b, "references": c} for a, b, c in expected]
    run_command(metric(code), None, TEXTS, [TEXTS], lambda more: None)
    entry = json.loads(file.read_bytes().splitlines()[2])
    assert entry == {"source": None, "hypothesis": TEXTS[2], "references": [TEXTS[2]]}


def test_numbers_may_have_any_shape_that_a_number_has() -> None:
    code = "print('1\\n-2.5\\n+.5\\r\\n 3e2 \\n0\\n1E-3\\n7.', end='')"
    assert list(run_command(metric(code), *SEGMENTS, lambda more: None)) == [1, -2.5, 0.5, 300, 0, 0.001, 7]


@pytest.mark.few(4)
@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1_0", "", "٣", "0x1", "1 2", "null", "1e999", "x" * 5000])
def test_what_is_not_a_finite_number_is_refused(text: str) -> None:
    said = failure(f"import sys\nsys.stdout.buffer.write('1\\n{text}\\n'.encode())")
    assert said.startswith("printed ")
    assert said.endswith(" for segment 2: not a finite number")
    assert len(said) < 130


@pytest.mark.slow
def test_large_inputs_and_outputs_fill_no_pipe() -> None:
    """More in, out and on stderr than pipes hold, in any order: reading all first, or answering at once and loudly."""
    texts = [f"{number} " + "x" * 20 for number in range(100_000)]
    at_once = (
        "import sys\nfor line in sys.stdin:\n    print(line.split('\"')[7].split()[0]); sys.stderr.write('.' * 20)"
    )
    first_all = at_once.replace("in sys.stdin:", "in sys.stdin.readlines():")
    for code in (at_once, first_all):
        seen: list[int] = []
        numbers = run_command(metric(code), texts, texts, [texts], seen.append)
        assert list(numbers) == list(range(100_000))
        assert sum(seen) == 100_000


def test_too_few_or_too_many_numbers() -> None:
    assert failure("print(1)") == "printed 1 number for 7 segments"
    assert failure("pass") == "printed 0 numbers for 7 segments"
    assert failure("print('1\\n' * 7)") == "printed more lines than the 7 segments that it was given"
    assert failure("while True: print(1)") == "printed more lines than the 7 segments that it was given"


def test_a_command_that_fails_is_quoted_with_its_last_line() -> None:
    assert failure("import sys\nsys.stderr.write('a\\nCUDA out\\x1b of memory\\n\\n')\nsys.exit(3)") == (
        "ended with exit code 3: CUDA out\\x1b of memory"
    )
    assert failure("print('1\\n' * 7, end=''); raise SystemExit(1)") == "ended with exit code 1"
    assert failure("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)") == "was ended by SIGSEGV"
    assert failure("import sys\nsys.stderr.write('x' * 10**6)\nsys.exit(1)").endswith(": " + "x" * 200)


def test_a_command_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for command, why in (("no-such-command", "No such file"), (str(tmp_path / "text"), "Permission denied")):
        found = external_scores([ExternalMetric(name="m", command=(command,))], "test", *SEGMENTS, NullReporter())
        assert found.missing["m"].startswith(f"cannot be started: {command}: {why}")
    assert len(missing_command_warnings([ExternalMetric(name="m", command=("no-such-command",)), metric("")])) == 1


def alive(process: int) -> bool:
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(process, 0)
        # a child of a child that was killed waits for whoever collects it
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return False


def ends(processes: Sequence[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(map(alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(alive, processes))


def family(folder: Path, then: str) -> tuple[str, Path]:
    """A program with a child that outlives it, both of which note their numbers."""
    file = folder / "processes"
    code = "import os, sys, time\nchild = os.fork()\nif child == 0: time.sleep(600)\n"
    return code + f"open({str(file)!r}, 'w').write(f'{{os.getpid()}} {{child}}')\n" + then, file


@pytest.mark.parametrize("then", ["time.sleep(600)", "sys.stdin.read(); print('1\\n' * 7, end='')"])
def test_a_command_past_its_limit_is_ended_with_all_that_it_started(tmp_path: Path, then: str) -> None:
    code, file = family(tmp_path, then)
    assert failure(code, limit=0.5) == "did not end within its limit of 0.5 s"
    assert ends([int(each) for each in file.read_text().split()])


def test_a_command_that_stays_after_its_last_line_is_past_its_limit() -> None:
    code = "import os, time\nos.write(1, b'1\\n' * 7); os.close(1); os.close(2); time.sleep(600)"
    assert failure(code, limit=0.5) == "did not end within its limit of 0.5 s"


def test_ctrl_c_ends_the_command_with_all_that_it_started(tmp_path: Path) -> None:
    code, file = family(tmp_path, "print(1, flush=True); time.sleep(600)")

    def interrupt(more: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_command(metric(code), *SEGMENTS, interrupt)
    assert ends([int(each) for each in file.read_text().split()])


def test_numbers_whose_sum_is_no_number() -> None:
    assert failure("print('1e308\\n' * 7, end='')") == "printed numbers whose sum is too large"


def test_a_signature_holds_the_command_and_the_contents_of_its_files(tmp_path: Path) -> None:
    script = tmp_path / "score.py"
    script.write_text("one")
    plain = ExternalMetric(name="comet", command=("python", str(script), "a|b\n c"))
    references = [["a", "b"], ["c", "d"]]
    found = external_signature(plain, references)
    assert found.startswith(f"external:comet|nrefs:2|command:python {script} 'a¦b c'|sha256:")
    assert len(found.split("|")) == 5
    assert list(command_files(plain)) == [f"external comet: {script}"]
    script.write_text("two!")
    others = [plain, ExternalMetric(name="comet", command=(*plain.command, "more"))]
    others.append(plain.model_copy(update={"higher_is_better": False}))
    assert len({found, *(external_signature(each, references) for each in others)}) == 4
    assert [lower_is_better("comet", external_signature(each, references)) for each in others] == [False, False, True]
    assert len(external_signature(ExternalMetric(name="m", command=("x" * 10**5,)), references)) < 300
    assert "|nrefs:var|" in external_signature(plain, [["a", "b"], ["c", ""]]), "as the metrics beside it"


def test_a_command_is_a_list_or_a_text_that_no_shell_reads() -> None:
    def command(given: object) -> tuple[str, ...]:
        config = EvaluationConfig.model_validate_json(
            json.dumps({"external": [{"name": "m", "command": given}]}), strict=True
        )
        assert EvaluationConfig.model_validate_json(config.model_dump_json(), strict=True) == config
        return config.external[0].command

    assert command("conda run 'my env' $HOME; rm *") == ("conda", "run", "my env", "$HOME;", "rm", "*")
    assert command(["a b", "|"]) == ("a b", "|")
    for wrong, why in (("", "is empty"), ([], "is empty"), ("'a", "No closing quotation"), (["\0"], "NUL")):
        with pytest.raises(ValidationError, match=why):
            command(wrong)


@pytest.mark.parametrize("name", ["bleu", "BLEU", "perplexity", "loss", "Other", "", "a b", "a|b", "x" * 41, "../x"])
def test_a_name_is_its_own(name: str) -> None:
    with pytest.raises(ValidationError):
        EvaluationConfig(external=({"name": "other", "command": "x"}, {"name": name, "command": "x"}))  # type: ignore[arg-type]
    assert EvaluationConfig(external=({"name": "метрика-2", "command": "x"},))  # type: ignore[arg-type]
