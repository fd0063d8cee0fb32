"""Settings of every test, and the table of promises at the end of a run."""

import atexit
import os
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import settings

from tests.promises import PROMISES

# Property tests have no time limit a case, since machines differ.
settings.register_profile("tfm", deadline=None, max_examples=50)
settings.load_profile("tfm")

# The user's own cache folder is none of the tests' business; but matplotlib's list of fonts takes seconds to make.
_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
os.environ.setdefault("MPLCONFIGDIR", os.path.join(_cache, "matplotlib"))
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="tfm-cache-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("promise"):
            assert mark.args[0] in PROMISES, f"{item.nodeid}: there is no promise {mark.args[0]!r}"
            # Properties reach the summary from other processes as well; marks do not.
            item.user_properties.append(("promise", mark.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The table of promises, where the run was asked for them."""
    if "promise" not in (config.option.markexpr or ""):
        return
    outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in ("passed", "failed", "skipped", "error"):
        for report in terminalreporter.getreports(outcome):
            properties = list(getattr(report, "user_properties", ()))
            for _, promise in (each for each in properties if each[0] == "promise"):
                outcomes[promise][outcome] += 1
                if report.when == "call":
                    counted[promise].update({name: count for name, count in properties if name != "promise"})
    terminalreporter.section("promises", sep="=")
    terminalreporter.write_line("| promise | tests | counted | outcome |")
    terminalreporter.write_line("|---|---|---|---|")
    for promise, sentence in PROMISES.items():
        found = outcomes[promise]
        tests = found.total()
        numbers = ", ".join(f"{count:,} {name}" for name, count in counted[promise].items())
        bad = [f"{found[each]} {each}" for each in ("failed", "error") if found[each]]
        skipped = [f"{found['skipped']} skipped"] if found["skipped"] else []
        outcome = ", ".join([*(bad or ["holds" if found["passed"] else "not tested"]), *skipped])
        terminalreporter.write_line(f"| {sentence} | {tests} | {numbers} | {outcome} |")
