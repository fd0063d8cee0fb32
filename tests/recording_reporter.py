"""A reporter that remembers what it was told."""

from tfm.pipeline.runtime.progress import NullReporter


class Listening(NullReporter):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)
