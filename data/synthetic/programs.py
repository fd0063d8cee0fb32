"""Learning to execute: small Python programs and their output (Zaremba & Sutskever 2014, section 3 and algorithm 1).

A text is one line, so ";" stands where a program's line ends: with line breaks in its place it is Python. The splits
are cut by a hash of the program, so they share none, however long and deep each one's programs are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from tfm.data.errors import DataError
from tfm.data.synthetic.string_tasks import SPLITS, split_of

LINE_END = ";"
VARIABLE_NAMES = "abcdefghijklmnopqrstuvwyz"  # x counts the rounds of loops
MAX_DRAWS_WITHOUT_NEW = 20_000


@dataclass(frozen=True)
class Expression:
    """An expression of a program.

    Args:
        lines: to run before it.
        code: of the expression.
        value: of the expression.
    """

    lines: tuple[str, ...]
    code: str
    value: int


@dataclass
class ProgramWriter:
    """Writes one program: a stack of expressions, each made by an operation from numbers and earlier expressions.

    Args:
        random: draws from 0 to below 1.
        length: the most digits of a number.
        stack: expressions that are not used yet.
        names: of variables that are not used yet.
    """

    random: Callable[[], float]
    length: int
    stack: list[Expression] = field(default_factory=list)
    names: list[str] = field(default_factory=lambda: list(VARIABLE_NAMES))

    def random_below(self, number: int) -> int:
        """A number from 0, below `number`."""
        return int(self.random() * number)

    def draw_small_number(self) -> int:
        """A factor, or the rounds of a loop: 1 to 4 length, so that a product takes linear time too."""
        return 1 + self.random_below(4 * self.length)

    def draw_operand(self) -> Expression:
        """Draw the newest expression with probability 1/2 if there is one, else a number of at most `length` digits."""
        if self.stack and self.random() > 0.5:
            return self.stack.pop()
        number = 0
        while not number:
            for _ in range(self.length):
                number = 10 * number + self.random_below(10)
        return Expression((), str(number), number)

    def draw_variable_name(self) -> str:
        """A name that the program does not have yet."""
        return self.names.pop(self.random_below(len(self.names)))


def addition(writer: ProgramWriter) -> Expression:
    """(a+b)"""
    a, b = writer.draw_operand(), writer.draw_operand()
    return Expression(a.lines + b.lines, f"({a.code}+{b.code})", a.value + b.value)


def subtraction(writer: ProgramWriter) -> Expression:
    """(a-b)"""
    a, b = writer.draw_operand(), writer.draw_operand()
    return Expression(a.lines + b.lines, f"({a.code}-{b.code})", a.value - b.value)


def multiplication(writer: ProgramWriter) -> Expression:
    """(a*n) or (n*a), n small."""
    a, n = writer.draw_operand(), writer.draw_small_number()
    code = f"({a.code}*{n})" if writer.random_below(2) else f"({n}*{a.code})"
    return Expression(a.lines, code, a.value * n)


def condition(writer: ProgramWriter) -> Expression:
    """(a if b<c else d)"""
    a, b, c, d = (writer.draw_operand() for _ in range(4))
    sign, holds = (("<", b.value < c.value), (">", b.value > c.value))[writer.random_below(2)]
    code = f"({a.code} if {b.code}{sign}{c.code} else {d.code})"
    return Expression(a.lines + b.lines + c.lines + d.lines, code, a.value if holds else d.value)


def assignment(writer: ProgramWriter) -> Expression:
    """v=a, then v."""
    a, name = writer.draw_operand(), writer.draw_variable_name()
    return Expression((*a.lines, f"{name}={a.code}"), name, a.value)


def loop(writer: ProgramWriter) -> Expression:
    """v=a, n times v+=b, then v."""
    a, b, name, n = (
        writer.draw_operand(),
        writer.draw_operand(),
        writer.draw_variable_name(),
        writer.draw_small_number(),
    )
    lines = (f"{name}={a.code}", f"for x in range({n}):{name}+={b.code}")
    return Expression((*a.lines, *b.lines, *lines), name, a.value + n * b.value)


OPERATIONS: tuple[Callable[[ProgramWriter], Expression], ...] = (
    addition,
    subtraction,
    multiplication,
    condition,
    assignment,
    loop,
)


def write_program(random: Callable[[], float], length: int, nesting: int) -> tuple[str, str]:
    """Write a program of `nesting` operations, and the text that it prints (algorithm 1).

    Args:
        random: draws from 0 to below 1.
        length: the most digits of a number.
        nesting: the number of operations.
    """
    writer = ProgramWriter(random, length)
    for _ in range(nesting):
        writer.stack.append(OPERATIONS[writer.random_below(len(OPERATIONS))](writer))
    printed = writer.stack.pop()
    return LINE_END.join((*printed.lines, f"print({printed.code})")), str(printed.value)


def write_addition(random: Callable[[], float], length: int) -> tuple[str, str]:
    """print(a+b) of two numbers of `length` digits each, and their sum."""
    a, b = (_random_number(random, length) for _ in range(2))
    return f"print({a}+{b})", str(a + b)


def _random_number(random: Callable[[], float], length: int) -> int:
    number = 1 + int(random() * 9)
    for _ in range(length - 1):
        number = 10 * number + int(random() * 10)
    return number


def generate_programs(
    split: str, size: int, seed: int, *, length: int, nesting: int, mix: bool
) -> Iterator[tuple[str, str]]:
    """Yield different programs with the text that they print, a pure function of the arguments.

    Args:
        split: one of SPLITS.
        size: the number of programs.
        seed: of the draws.
        length: the most digits of a number.
        nesting: the number of operations.
        mix: whether length and nesting are drawn for each, from 1 to those (the paper's mixed strategy).
    """
    draw = Random(f"programs {split} {seed} {length} {nesting} {mix}").random

    def write_one_program() -> tuple[str, str]:
        if mix:
            return write_program(draw, 1 + int(draw() * length), 1 + int(draw() * nesting))
        return write_program(draw, length, nesting)

    return _distinct_pairs(write_one_program, split, size)


def generate_additions(split: str, size: int, seed: int, *, length: int, mix: bool) -> Iterator[tuple[str, str]]:
    """Yield different additions with their sums, as `programs` does.

    Args:
        split: one of SPLITS.
        size: the number of additions.
        seed: of the draws.
        length: the digits of the numbers.
        mix: whether the number of digits is drawn for each, from 1 to `length`.
    """
    random = Random(f"addition {split} {seed} {length} {mix}").random
    return _distinct_pairs(lambda: write_addition(random, 1 + int(random() * length) if mix else length), split, size)


def _distinct_pairs(write: Callable[[], tuple[str, str]], split: str, size: int) -> Iterator[tuple[str, str]]:
    """Different pairs of a split. Raises DataError if there are too few."""
    if split not in SPLITS:
        raise DataError(f"the built-in programs have no split {split!r}; choose one of {', '.join(SPLITS)}")
    seen: set[str] = set()
    since_new = 0
    while len(seen) < size:
        source, target = write()
        since_new += 1
        if source not in seen and split_of(source) == split:
            seen.add(source)
            since_new = 0
            yield source, target
        elif since_new == MAX_DRAWS_WITHOUT_NEW:
            raise DataError(
                f"there are hardly more than {len(seen):,} different programs of this length and nesting for the "
                f"{split} split, and {size:,} are wanted: lower `size`"
            )


# (split, size, seed, and what data.config.PARAMETERS says) -> pairs
PROGRAM_GENERATORS: Mapping[str, Callable[..., Iterator[tuple[str, str]]]] = {
    "addition": generate_additions,
    "programs": generate_programs,
}
