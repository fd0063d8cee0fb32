"""The notes below pages that show commands: the tests that they name are there and read the pages."""

from docs.site.command_notes import CHECKED_BY, PARTS_RUN_BY, RUN_BY, note_of
from tests.test_docs import ROOT


def test_the_tests_that_are_named_read_the_pages() -> None:
    for page, test in RUN_BY.items():
        assert (ROOT / "docs" / page).is_file()
        assert f'"{page}"' in (ROOT / test).read_text("utf-8")
    for folder, test in PARTS_RUN_BY.items():
        assert (ROOT / "docs" / folder).is_dir()
        assert f'"{folder.rstrip("/")}"' in (ROOT / test).read_text("utf-8")


def test_a_page_with_commands_says_which_test_runs_them() -> None:
    text = "Type\n\n    tfm run recipes/demo.toml\n"
    assert f"are run by a test: `{RUN_BY['start.md']}`" in note_of("start.md", text)
    assert "but for those that say so" in note_of("tutorials/own-data.md", text)
    assert f"are not run by a test: `{CHECKED_BY}`" in note_of("recipes.md", text)
    assert note_of("start.md", "No command, only `tfm run` in a sentence.\n") == ""
