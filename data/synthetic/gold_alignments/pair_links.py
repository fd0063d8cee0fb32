"""The words of a pair of sentences with the links between them that are known so far."""

from dataclasses import dataclass, field

from tfm.data.synthetic.gold_alignments import dictionary

Link = tuple[int, int]
"""Places, from 0, of an English and a German word, which are what stands between spaces."""


@dataclass
class PairLinks:
    """The words of a pair, without capitals and end marks, and the links so far.

    clause_starts: places of German words that stand behind a comma. negations: the places of forms of "kein" that
    say "not".
    """

    english: list[str]
    german: list[str]
    clause_starts: frozenset[int]
    sure: set[Link] = field(default_factory=set)
    possible: set[Link] = field(default_factory=set)
    negations: list[int] = field(default_factory=list)

    @classmethod
    def from_texts(cls, english: str, german: str) -> "PairLinks":
        """The words of two sentences, without links."""
        words = german.split(" ")
        starts = frozenset(place for place in range(1, len(words)) if words[place - 1].endswith(","))
        return cls(dictionary.split_english(english), dictionary.split_german(german), starts)

    def unlinked_english_positions(self) -> list[int]:
        """Places of English words without a link."""
        known = {place for place, _ in self.sure | self.possible}
        return [place for place in range(len(self.english)) if place not in known]

    def unlinked_german_positions(self) -> list[int]:
        """Places of German words without a sure link."""
        known = {place for _, place in self.sure}
        return [place for place in range(len(self.german)) if place not in known]

    def surely_linked_german_positions(self, english_position: int) -> list[int]:
        """The German words that an English one surely translates."""
        return sorted(target for source, target in self.sure if source == english_position)
