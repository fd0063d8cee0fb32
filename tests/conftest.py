"""Settings of every test, and the table of promises or meanings at the end of a run."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from types import SimpleNamespace

import pytest
from hypothesis import settings

from tests.promises import MEANINGS, PROMISES

# Property tests have no time limit a case, since machines differ. What they draw is the same in every run, so that a
# commit passes or fails for all; `make test-random` draws anew, and more.
settings.register_profile("same", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=500)
settings.load_profile("same")

# How busy the machine is decides nothing in a test.
os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))

# The user's own cache folder is none of the tests' business; but matplotlib's list of fonts takes seconds to make.
_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
os.environ.setdefault("MPLCONFIGDIR", os.path.join(_cache, "matplotlib"))
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="tfm-cache-")
os.environ["XDG_STATE_HOME"] = os.path.join(os.environ["XDG_CACHE_HOME"], "state")  # nor is what the user has allowed
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """No test cuts the power: what this process has written need not reach the disk before the next test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(autouse=True)
def _no_compiled_search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that are not slow search and generate step by step, as they do without numba: to compile the loops of whole
    searches takes longer than a third of the quick suite.
    """
    if request.node.get_closest_marker("slow") is None:
        from tfm.model.fused import compiled_transformer, greedy_search, text_generation

        none = SimpleNamespace(are_kernels_enabled=lambda: False)
        monkeypatch.setattr(greedy_search, "dispatch", none)
        monkeypatch.setattr(text_generation, "dispatch", none)
        monkeypatch.setattr(compiled_transformer, "load_search_kernels", lambda: None)


@pytest.fixture(autouse=True)
def _own_signal_handlers() -> Iterator[None]:
    """A handler of SIGTERM that a test leaves behind would keep a pool of processes, forked later, from ending."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def _curves_in_outline() -> Iterator[None]:
    """To draw curves takes longer than such short trainings do: what is written in their place says the same."""
    from tfm.pipeline.reports import training_curves

    def outline(metrics: Sequence[Mapping[str, object]]) -> str:
        return f"<svg>{[line.get('loss') for line in metrics]}</svg>"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_curves, "curves_svg", outline)
        yield


TABLES = {"promise": PROMISES, "meaning": MEANINGS}  # by mark


def mark_further_cases_slow(items: Sequence[pytest.Item]) -> None:
    """Leave `few(n)` cases of a parametrized test, spread over all of them, to the quick suite."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few") is not None and item.get_closest_marker("slow") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for several in cases.values():
        num_quick = several[0].get_closest_marker("few").args[0]  # type: ignore[union-attr]
        quick = {place * len(several) // num_quick for place in range(num_quick)}
        for place, item in enumerate(several):
            if place not in quick:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collection makes millions of objects that stay: to look for garbage among them takes a third of its time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    mark_further_cases_slow(items)
    for item in items:
        for kind, sentences in TABLES.items():
            for mark in item.iter_markers(kind):
                assert mark.args[0] in sentences, f"{item.nodeid}: there is no {kind} {mark.args[0]!r}"
                # Properties reach the summary from other processes as well; marks do not.
                item.user_properties.append((kind, mark.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The tables that the run was asked for."""
    for kind, sentences in TABLES.items():
        if kind in (config.option.markexpr or ""):
            _print_table(terminalreporter, kind, sentences)


def _print_table(terminalreporter: pytest.TerminalReporter, kind: str, sentences: Mapping[str, str]) -> None:
    """A line a sentence: its tests, what they counted, and the outcome."""
    outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in ("passed", "failed", "skipped", "error"):
        for report in terminalreporter.getreports(outcome):
            properties = list(getattr(report, "user_properties", ()))
            for _, name in (each for each in properties if each[0] == kind):
                outcomes[name][outcome] += 1
                for what, count in properties if report.when == "call" else ():
                    counted[name][what] += 0 if what in TABLES else count
    terminalreporter.section(f"{kind}s", sep="=")
    terminalreporter.write_line(f"| {kind} | tests | counted | outcome |")
    terminalreporter.write_line("|---|---|---|---|")
    for name, sentence in sentences.items():
        found = outcomes[name]
        tests = found.total()
        numbers = ", ".join(f"{count:,} {what}" for what, count in counted[name].items() if count)
        bad = [f"{found[each]} {each}" for each in ("failed", "error") if found[each]]
        skipped = [f"{found['skipped']} skipped"] if found["skipped"] else []
        outcome = ", ".join([*(bad or ["holds" if found["passed"] else "not tested"]), *skipped])
        terminalreporter.write_line(f"| {sentence} | {tests} | {numbers} | {outcome} |")
