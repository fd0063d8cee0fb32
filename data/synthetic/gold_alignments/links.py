"""The links between the words of a sentence of the built-in grammar, sure and possible.

A sure link joins a German word and the English word that it translates: at most one for each German word. Possible are
the further words that say the same: "does" beside "buy" for "kauft", "the" beside "in" for "im".
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import permutations

from tfm.data.synthetic.gold_alignments import dictionary
from tfm.data.synthetic.gold_alignments.dictionary import DETERMINERS, PRONOUNS, WORDS, Dictionary
from tfm.data.synthetic.gold_alignments.pair_links import Link, PairLinks


@dataclass(frozen=True)
class GoldAlignment:
    """The links of a pair. Each sure link is possible too."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def align_grammar_sentences(english: str, german: str) -> GoldAlignment:
    """Return the links of a sentence of the built-in grammar.

    Args:
        english: the sentence.
        german: its translation.

    Raises:
        ValueError: a word has no link, so that this is no pair of the grammar.
    """
    pair = PairLinks.from_texts(english, german)
    _link_clock_times(pair)
    progressive = _progressive_auxiliaries(pair)
    qualities = {each: WORDS[each] for each in dictionary.ADJECTIVES}
    words = {each: WORDS[each] for each in WORDS.keys() - qualities}
    _link_by_dictionary(pair, words, {*progressive, *_phrasal_preposition_positions(pair)})
    for source, target in sorted(pair.sure):
        if pair.english[source] in dictionary.NOMINALS:
            _link_before_noun(pair, source, target)
    _link_by_dictionary(pair, qualities)
    _link_pronouns(pair)
    _link_negations(pair)
    _link_particles(pair)
    _link_infinitives(pair)
    _link_auxiliaries(pair, progressive)
    missing = [pair.english[place] for place in pair.unlinked_english_positions()]
    missing += [pair.german[place] for place in {*range(len(pair.german))} - {each for _, each in _all_links(pair)}]
    if missing:
        raise ValueError(f"{english!r}, {german!r}: no link of {', '.join(missing)}")
    return GoldAlignment(frozenset(pair.sure), frozenset(_all_links(pair)))


def _all_links(pair: PairLinks) -> set[Link]:
    return pair.sure | pair.possible


def _link_clock_times(pair: PairLinks) -> None:
    """Link "at five o'clock" and "um fünf Uhr", word by word; "um diese Uhr zu reparieren" is no time."""
    sources = [place for place, word in enumerate(pair.english) if word == "o'clock"]
    targets = [
        place
        for place in range(2, len(pair.german))
        if pair.german[place - 2 : place + 1 : 2] == ["um", "uhr"]
        and pair.german[place - 1] in dictionary.GERMAN_NUMBERS
    ]
    for source, target in zip(sources, targets, strict=True):
        pair.sure |= {(source - back, target - back) for back in range(3)}


def _progressive_auxiliaries(pair: PairLinks) -> dict[int, int]:
    """Positions of the forms of "be" in progressives, which German does not have, each with that of its participle."""
    participle_by_auxiliary: dict[int, int] = {}
    for position, word in enumerate(pair.english):
        if word in dictionary.ING_FORMS:
            auxiliaries_before = (
                each for each in range(position - 1, -1, -1) if pair.english[each] in dictionary.BE_FORMS
            )
            participle_by_auxiliary[next(auxiliaries_before)] = position
    return participle_by_auxiliary


def _phrasal_preposition_positions(pair: PairLinks) -> Iterator[int]:
    """Yield the English positions of prepositions of several words: "next" in "next to" is not "nächste"."""
    for phrase in dictionary.PHRASAL_PREPOSITIONS:
        for first in range(len(pair.english) - len(phrase) + 1):
            if tuple(pair.english[first : first + len(phrase)]) == phrase:
                yield from range(first, first + len(phrase))


def _link_by_dictionary(pair: PairLinks, words: Dictionary, excluded: Collection[int] = ()) -> None:
    """Link the words in a dictionary; among several possible links choose those without crossings.

    Args:
        pair: the words, and the links so far.
        words: the dictionary.
        excluded: English positions that are not linked.
    """
    targets = pair.unlinked_german_positions()
    edges = {
        (source, target)
        for source in pair.unlinked_english_positions()
        if source not in excluded
        for target in targets
        if pair.german[target] in words.get(pair.english[source], ())
    }
    for component in _connected_components(edges):
        pair.sure |= best_matching(component)
    for source, target in sorted(pair.sure):
        for owned, owned_target in sorted(pair.sure):  # "our mother's mother": "die Mutter unserer Mutter"
            words_between = pair.english[source + 1 : owned]
            is_owner = owned > source and pair.english[source].endswith("'s")
            is_adjacent = all(each in dictionary.ADJECTIVES for each in words_between)
            if is_owner and is_adjacent and target < owned_target and pair.german[target] == pair.german[owned_target]:
                pair.sure ^= {(source, target), (owned, owned_target), (source, owned_target), (owned, target)}


def _connected_components(edges: set[Link]) -> Iterator[set[Link]]:
    """Yield the connected components of a graph, each as its edges."""
    remaining_edges = set(edges)
    while remaining_edges:
        component = {min(remaining_edges)}
        while neighbours := {
            each
            for each in remaining_edges - component
            if any(each[0] == one[0] or each[1] == one[1] for one in component)
        }:
            component |= neighbours
        remaining_edges -= component
        yield component


def best_matching(edges: set[Link]) -> set[Link]:
    """The largest matching in a small graph; of several, the one with the fewest crossings."""
    sources, targets = sorted({source for source, _ in edges}), sorted({target for _, target in edges})
    slots = [*targets, *[-1] * len(sources)]
    best: tuple[int, int, list[Link]] = (0, 0, [])
    for chosen_targets in set(permutations(slots, len(sources))):
        links = [each for each in zip(sources, chosen_targets, strict=True) if each in edges]
        crossings = sum(a[1] > b[1] for n, a in enumerate(links) for b in links[n + 1 :])
        best = max(best, (len(links), -crossings, sorted(links, reverse=True)))
    return set(best[2])


def _link_before_noun(pair: PairLinks, source: int, target: int) -> None:
    """Link what stands before a noun, a name or a day: adjective and number, determiner, preposition."""
    english, german = pair.english, pair.german
    source, target = source - 1, target - 1
    while min(source, target) >= 0 and _is_same_modifier(pair, source, target):
        pair.sure.add((source, target))
        source, target = source - 1, target - 1
    if target < 0:
        return
    word = english[source] if source >= 0 else ""
    if german[target] in DETERMINERS.get(word, ()):
        pair.sure.add((source, target))
        source, target = source - 1, target - 1
    elif german[target].startswith("kein"):
        pair.negations.append(target)
        if word in ("a", "an"):
            pair.possible.add((source, target))
        return
    elif word.endswith("'s"):  # of an owner: "the baker's old dog", "der alte Hund des Bäckers"
        pair.possible.add((source, target))
        source -= 2 if source and english[source - 1] in DETERMINERS else 1
        target -= german[target] not in dictionary.CONTRACTIONS
    elif word in DETERMINERS and german[target] in dictionary.CONTRACTIONS:
        pair.possible.add((source, target))
        source -= 1
    _link_preposition(pair, source, target)


def _is_same_modifier(pair: PairLinks, source: int, target: int) -> bool:
    """Whether words are an adjective or a number and its translation."""
    word = pair.english[source]
    return ((source, target) in pair.sure and word in dictionary.NUMBERS) or (
        word in dictionary.ADJECTIVES and pair.german[target] in WORDS[word]
    )


def _link_preposition(pair: PairLinks, source: int, target: int) -> None:
    """Link a preposition that ends at an English place and is the German word at another."""
    if source < 0 or target < 0:
        return
    german = dictionary.CONTRACTIONS.get(pair.german[target], pair.german[target])
    for phrase, (translation, main) in dictionary.PHRASAL_PREPOSITIONS.items():
        first = source + 1 - len(phrase)
        if first >= 0 and tuple(pair.english[first : source + 1]) == phrase and german == translation:
            pair.sure.add((first + main, target))
            pair.possible |= {(place, target) for place in range(first, source + 1)}
            return
    if german in dictionary.PREPOSITIONS.get(pair.english[source], ()):
        pair.sure.add((source, target))


def _link_pronouns(pair: PairLinks) -> None:
    """Link pronouns, relative ones too, and the prepositions before them."""
    earlier_links = set(pair.sure)
    relative_targets = [
        place
        for place in pair.unlinked_german_positions()
        if pair.german[place] in dictionary.GERMAN_RELATIVE_PRONOUNS and _begins_clause(pair, place)
    ]
    sources = pair.unlinked_english_positions()
    relative_sources = [place for place in sources if pair.english[place] in dictionary.ENGLISH_RELATIVE_PRONOUNS]
    pair.sure |= best_matching({(source, target) for source in relative_sources for target in relative_targets})
    _link_by_dictionary(pair, PRONOUNS)
    for source, target in sorted(pair.sure - earlier_links):
        _link_preposition(pair, source - 1, target - 1)


def _begins_clause(pair: PairLinks, place: int) -> bool:
    """Whether a German word begins a clause: it follows a comma, or a preposition that follows one."""
    prepositions = {each for some in dictionary.PREPOSITIONS.values() for each in some}
    return place in pair.clause_starts or (place - 1 in pair.clause_starts and pair.german[place - 1] in prepositions)


def _link_negations(pair: PairLinks) -> None:
    """Link "not" and "nicht", or the "kein" that stands for both "not" and "a"."""
    sources = [place for place, word in enumerate(pair.english) if word in ("not", "cannot")]
    targets = sorted([*pair.negations, *(place for place, word in enumerate(pair.german) if word == "nicht")])
    pair.sure |= set(zip(sources, targets, strict=True))


def _link_infinitives(pair: PairLinks) -> None:
    """Link "to" of infinitives and of "want to", and "in order"."""
    for place in pair.unlinked_english_positions():
        if pair.english[place] == "to" and place:
            if pair.english[place - 1] in ("want", "wants", "wanted", "have", "had"):
                pair.possible |= {(place, target) for target in pair.surely_linked_german_positions(place - 1)}
            elif place + 1 < len(pair.english):
                for target in pair.surely_linked_german_positions(place + 1):
                    is_zu_separate = target > 0 and pair.german[target - 1] == "zu"
                    (pair.sure if is_zu_separate else pair.possible).add((place, target - is_zu_separate))
        elif pair.english[place] == "in" and pair.english[place + 1] == "order":
            pair.possible |= {(place, target) for target in pair.surely_linked_german_positions(place + 1)}


def _link_particles(pair: PairLinks) -> None:
    """Link the particles of verbs: "looks for", "ruft .. an"."""
    for source, target in sorted(pair.sure, key=lambda link: -link[1]):
        kinds = dictionary.VERB_PARTICLES.get(pair.english[source], ())
        next_word = pair.english[source + 1] if source + 1 < len(pair.english) else ""
        kinds = {each for each in kinds if each[0] == next_word} or {each for each in kinds if not each[0]}
        for particle, prefix in kinds:
            ends = [
                place
                for place in pair.unlinked_german_positions()
                if place > target and pair.german[place] == prefix and (source, place) not in pair.possible
            ]
            if particle:
                pair.possible.add((source + 1, target))
            if ends and not pair.german[target].startswith(prefix):
                particle_offset = particle == "up"
                pair.sure.add((source + particle_offset, ends[0]))
                pair.possible |= {(source + each, ends[0]) for each in range(2 if particle else 1)}


def _link_auxiliaries(pair: PairLinks, verb_of_progressive_be: dict[int, int]) -> None:
    """Link "do" and the "be" of progressives to the verb that they belong to, and "there" to its verb."""
    for place in pair.unlinked_english_positions():
        verb: int | None = verb_of_progressive_be.get(place)
        if pair.english[place] in dictionary.DO_FORMS:
            later_positions = range(place + 1, len(pair.english))
            verb = next((each for each in later_positions if pair.english[each] in dictionary.VERBS), None)
        elif pair.english[place] == "there":
            verb = place + 1
        if verb is not None:
            pair.possible |= {(place, target) for target in pair.surely_linked_german_positions(verb)}
