"""Words that users read: a change of any is seen, since all of them stand in one file."""

from tests.golden.messages import FILE, messages


def test_every_message_stands_in_the_golden_file() -> None:
    """After a change on purpose `python -m tests.golden.messages` writes it anew."""
    assert messages() == FILE.read_text("utf-8").splitlines()
