"""Notes below pages that show commands: whether a test runs them."""

import re

COMMAND = re.compile(r"^ {4,}(?:\$ )?(?:echo .* \| )?(?:tfm|make) ", re.MULTILINE)
RUN_BY = {
    "start.md": "tests/system/test_start_page.py",
    "python.md": "tests/system/test_python_examples.py",
}
"""Pages whose commands a test runs as they stand there; some of their sizes are smaller in it."""
PARTS_RUN_BY = {"tutorials/": "tests/system/test_tutorials.py"}
"""Folders of pages that say in front of a block if no test runs it."""
CHECKED_BY = "tests/test_docs.py"


def note_of(path: str, text: str) -> str:
    """The note below a page; empty for one without commands. path: of the page, in docs/."""
    if not COMMAND.search(text):
        return ""
    if path in RUN_BY:
        return f"\n\n*The commands of this page are run by a test: `{RUN_BY[path]}`.*\n"
    for folder, test in PARTS_RUN_BY.items():
        if path.startswith(folder):
            return f"\n\n*The commands of this page are run by a test, `{test}`, but for those that say so.*\n"
    return (
        f"\n\n*The commands of this page are not run by a test: `{CHECKED_BY}` checks that commands, options, recipes "
        "and keys are there.*\n"
    )
