"""Text files that a person names: a file of another form is refused before its tags are read as words."""

from pathlib import Path

from tfm.data.corpora.markup.problems import check_lines, markup_problem, tag_columns_problem
from tfm.data.lines import open_lines


def check_text_file(file: Path) -> None:
    """Raise DataError for a file of tags or times, or of words and their tags in columns, which would be words.

    A pipe can be read once, and is not looked at.
    """
    if file.is_file():
        check_lines(open_lines(file), file, (markup_problem, tag_columns_problem))
