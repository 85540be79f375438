"""What fuzzing checks: any text is a filter or a FilterError, and a filter means what the reference says."""

from __future__ import annotations

import random
import re

from holdfast import Filter, FilterError
from tests.filters import reference
from tests.filters.strategies import Choices, event, filter_text

EVENTS = [event(Choices(random.Random(seed).randbytes(80))) for seed in range(6)]
TOKENS = (
    *(
        "a",
        "b",
        "topic",
        '"a b"',
        '""',
        "1",
        "0",
        "2.5",
        ".5",
        "7.",
        "1e3",
        "9223372036854775807",
        "9223372036854775808",
    ),
    *("'a'", "''", "'it''s'", "'%_'", "TRUE", "FALSE", "NULL", "AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE"),
    *("IS", "=", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "(", ")", ",", "'", '"', ".", "!", "\0"),
    *("\n", "\u00a0", "ä", "\U0001f600", "\ud800", "²", "\u0661", "e", "E", "$", "_", "--", "/*", "*/", ";"),
    *("035", "00", "0x1F", "0b1", "0x", "1_0", "1_", "5L", "5d", "5f", "€", "\u0301", "\u200d", "‿", "\u20dd"),
)
CORPUS = (
    "",
    " ",
    "\0",
    "'",
    '"',
    "''",
    '""',
    "(",
    ")",
    "()",
    "((((",
    "NOT",
    "NOT NOT",
    "-",
    "--",
    "+-+-a",
    "a",
    "a.",
    ".",
    "..",
    ".5.",
    "1.e",
    "1.e5",
    "1e+",
    "1e99999999999",
    "9" * 4000,
    "-" * 4000,
    "(" * 4000,
    "NOT " * 1000,
    "a IN (",
    "a IN (1,",
    "a IN (-",
    "a IN (-'a')",
    "a LIKE",
    "a LIKE '",
    "a LIKE '!' ESCAPE '!'",
    "a LIKE '%' ESCAPE '%'",
    "a LIKE '' ESCAPE '''",
    "a LIKE '''' ESCAPE ''''",
    "a BETWEEN",
    "a BETWEEN 1 AND",
    "a BETWEEN 1 AND 2 AND",
    "a BETWEEN b BETWEEN 1 AND 2 AND 3",
    "a BETWEEN (b BETWEEN 1 AND 2) AND (c BETWEEN 3 AND 4)",
    "a BETWEEN 1 AND 2 BETWEEN 3 AND 4",
    "NOT a BETWEEN NOT b AND c",
    "a IS NOT NOT NULL",
    "a IS NULL NULL",
    "(a) IS NULL",
    "(a IS NULL) IS NULL",
    "a = -9223372036854775808",
    "a = - -9223372036854775808",
    "a = -(-9223372036854775808)",
    "a = -9223372036854775808 - 1",
    "-9223372036854775808 / -1 = a",
    "-9223372036854775808 % -1 = a",
    "a = 1e308 * 1e308",
    "a = 1 / 0 % 0",
    "a IN (-9223372036854775808, 9223372036854775807)",
    "(((a = 1) = TRUE) = FALSE) <> (b = (c = 1))",
    "(a AND b) LIKE '%'",
    "((a OR b) + 1) BETWEEN (NOT c) AND -a",
    "a = 'a\0' OR a > 'a\0' AND a < 'a\0\0'",
    "a LIKE '\U0010ffff%' AND a < '\U0010ffff\U0010ffff'",
    "a LIKE '\ud7ff%' OR a >= '\ue000'",
    "a = '\ud800'",
    "\ud83d\ude00 = 1",
    '"\udfff" = 1',
    "größe = '\u202e\u200b\ufeff'",
    "ﬀ = 1 AND ß = 2 AND ŉ = 3",
    "l\u0131ke like 'x'",
    "a\u0301 = 1",
    "²= 1",
    "\u0661 = 1",
    "a = 1\r\nAND\u2028b = 2\x85",
    "a = 1 -- b",
    "a = 1; DROP TABLE a",
    "a = 035 OR b = 0x8000000000000000",
    "a = -0x8000000000000000 AND b = 0b1_1L OR c <> 1_0.5d",
    "3 + 5 AND a",
    "नमस्ते = 1 AND prix€ > 2 OR a\u200db = 3",
    'a = "UK"',
    "__import__('os')",
    "a.__class__ = 1",
    "{a} = '%s' AND b = '{0}'",
)


def check(text: str) -> bool:
    """Whether `text` is a filter. Raises AssertionError, or whatever went wrong, if something is not as promised."""
    try:
        filter = Filter(text)
    except FilterError as error:
        if not (error.problem and 0 <= error.offset <= len(text) and str(error).endswith("^")):
            raise AssertionError(f"an error without problem, place or caret: {error!r}") from error
        return False
    for attributes, topic in EVENTS:
        expected = reference.truth(filter.root, reference.event_of(attributes, topic)) is reference.TRUE
        assert filter.matches(attributes, topic) is expected
        assert filter.canonical.matches(attributes, topic) is expected
    assert Filter(str(filter)) == filter
    assert Filter.from_msgpack(filter.to_msgpack()) == filter
    assert filter.canonical == filter
    assert str(filter.canonical.canonical) == str(filter.canonical)
    return True


def mutated(text: str, chance: random.Random) -> str:
    """The text with one to three tokens or characters dropped, doubled, swapped or replaced."""
    pieces: list[str] = re.findall(r"\w+|\s+|.", text, re.DOTALL) if chance.random() < 0.8 else list(text)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(pieces) + 1)
        other = chance.randrange(len(pieces) + 1)
        match chance.randrange(5):
            case 0:
                del pieces[at : at + 1]
            case 1:
                pieces.insert(at, chance.choice(TOKENS))
            case 2:
                pieces[at : at + 1] = [chance.choice(TOKENS)]
            case 3:
                pieces[at:at] = pieces[min(at, other) : max(at, other)][:20]
            case _:
                del pieces[min(at, other) : max(at, other)]
    return "".join(pieces)


def random_text(chance: random.Random) -> str:
    """Mostly a valid filter with a few mistakes, else a run of tokens, else bytes."""
    kind = chance.random()
    if kind < 0.7:
        return mutated(filter_text(Choices(chance.randbytes(60)), 2), chance)
    if kind < 0.9:
        return chance.choice(("", " ")).join(chance.choice(TOKENS) for _ in range(chance.randrange(1, 12)))
    return chance.randbytes(chance.randrange(1, 40)).decode(chance.choice(("latin-1", "utf-16-le")), "replace")
