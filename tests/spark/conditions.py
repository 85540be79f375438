"""Events, the rows that they become, and random conditions on those rows.

The rows are made here by the rules of the connector's reference, plainly, so that the connector can be wrong alone.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from holdfast.model.values import Value

VALUE = "STRUCT<i: BIGINT, f: DOUBLE, s: STRING, b: BOOLEAN>"
SCHEMA = (
    'position BIGINT, topic STRING, x BIGINT, n INT, y TINYINT, d DOUBLE, s STRING, `a "b".c` STRING, '
    f"`or` BIGINT, b BOOLEAN, `Ü` DOUBLE, attributes MAP<STRING, {VALUE}>, _rejected STRING"
)
INTEGER_BITS = {"x": 64, "n": 32, "y": 8, "or": 64}
DOUBLES = ("d", "Ü")
STRINGS = ("s", 'a "b".c')

WHOLE: tuple[int, ...] = (
    0,
    1,
    2,
    5,
    -1,
    -5,
    100,
    127,
    -128,
    2**31 - 1,
    -(2**31),
    2**53 - 1,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**63 - 1,
)
WHOLE += (2**62, -(2**63), 2**63 - 513, 2**63 - 512)
FLOATS: tuple[float, ...] = (
    0.0,
    -0.0,
    0.1,
    0.5,
    1.0,
    2.5,
    5.0,
    -5.0,
    5e-324,
    1e308,
    -1e308,
    2.0**53,
    2.0**53 + 2,
    2.0**63,
    1.0000000000000002,
)
TEXTS: tuple[str, ...] = (
    "",
    "a",
    "A",
    "a ",
    " a",
    "ab",
    "abc",
    "it's",
    "a%",
    "a_b",
    "a\\b",
    "\\",
    "%",
    "!",
    "ä",
    "ß",
    "ss",
    "\n",
    "a\0",
)
TEXTS += (
    "\ue000",
    "\uffff",
    "\U0001f600",
    "a\U0001f600",
    "\U0001f600\U0001f600",
    "5",
    "true",
    "NULL",
    "a\U0001f600b",
    "İ",
)
PATTERNS: tuple[str, ...] = (
    "%",
    "_",
    "a%",
    "%b",
    "a%b",
    "%a%",
    "a_",
    "_b%",
    "a\\%",
    "a\\_b",
    "a\\\\b",
    "\\\\",
    "",
    "__",
    "\U0001f600%\U0001f600",
)
PATTERNS += ("a%\U0001f600b", "%\U0001f600%", "a%%b", "it's", "!%", "%\n%", "a \\%_")
TOPICS = ("", "a", "stock", "a'b", "\U0001f600", "Stock", "\uffff")
OTHER_KINDS: tuple[Value, ...] = (7, 2.5, "a", "", True, False, 2**53 + 1, 0)


class Case(NamedTuple):
    attributes: dict[str, Value]
    topic: str


def events(random: Random, count: int) -> list[Case]:
    """Every value alone, then several in one event; some lack a topic or attributes, or have one of another kind."""
    made = [Case({}, topic) for topic in TOPICS]
    made += [Case({name: value}, "") for name in ("x", "p") for value in WHOLE]
    made += [Case({name: value}, "") for name in ("d", "p") for value in FLOATS]
    made += [Case({name: value}, "a") for name in ("s", "p") for value in TEXTS]
    made += [Case({"b": value, "n": 1, "x": 1}, "a") for value in (True, False, 1, "true")]
    while len(made) < count:
        attributes: dict[str, Value] = {}
        for name in (*INTEGER_BITS, *DOUBLES, *STRINGS, "b", "p"):
            if random.random() < 0.3:
                continue
            attributes[name] = random.choice(OTHER_KINDS) if random.random() < 0.06 else _value(random, name)
        made.append(Case(attributes, random.choice(TOPICS)))
    return made


def _value(random: Random, name: str) -> Value:
    if name in INTEGER_BITS:
        limit = 2 ** (INTEGER_BITS[name] - 1)
        # Now and then one that the column can't hold.
        return random.choice([v for v in WHOLE if -limit <= v < limit] if random.random() < 0.97 else WHOLE)
    if name in DOUBLES:
        return random.choice(FLOATS) if random.random() < 0.8 else random.choice(WHOLE)
    if name in STRINGS:
        return random.choice(TEXTS)
    if name == "b":
        return random.random() < 0.5
    anything: tuple[Value, ...] = (*WHOLE, *FLOATS, *TEXTS, True, False)
    return random.choice(anything)


def fits(name: str, value: Value) -> bool:
    if name in INTEGER_BITS:
        limit = 2 ** (INTEGER_BITS[name] - 1)
        return type(value) is int and -limit <= value < limit
    if name in DOUBLES:
        return type(value) is float or (type(value) is int and int(float(value)) == value)
    if name == "b":
        return type(value) is bool
    return type(value) is str or name not in STRINGS


def row(place: int, event: Case) -> dict[str, Any]:
    """The row of an event, without the columns that are NULL."""
    columns: dict[str, Any] = {"position": place}
    if event.topic:
        columns["topic"] = event.topic
    columns["attributes"] = {name: _any_kind(value) for name, value in event.attributes.items()}
    misfits = [name for name, value in event.attributes.items() if not fits(name, value)]
    if misfits:
        return columns | {"_rejected": f"{misfits} do not fit"}
    for name, value in event.attributes.items():
        if name != "p":
            columns[name] = float(value) if name in DOUBLES else value
    return columns


def _any_kind(value: Value) -> dict[str, Value]:
    return {{int: "i", float: "f", str: "s", bool: "b"}[type(value)]: value}


# ---- conditions, as Spark's SQL


class Condition(NamedTuple):
    sql: str
    pushable: bool  # something of it must reach the broker
    exact: bool  # a filter can say it exactly, for events that fit


# What filters can't say, can't say exactly, or say in another way; each is also tried under NOT.
TRAPS = (
    "x = 9007199254740992D",
    "x <= 9007199254740992D",
    "x > 9223372036854775807D",
    "x = d",
    "x < d",
    "x IN (9007199254740992D, 1.5D)",
    "x < 10000000000000000000",
    "x IN (1, NULL)",
    "x IN (NULL)",
    "x IN (1, n, 5)",
    "x IS NULL",
    "x IS NULL AND s = 'a'",
    "x IS NULL OR s = 'a'",
    "x <=> 5",
    "x <=> NULL",
    "x <=> n",
    "X > 5",
    "x BETWEEN 1 AND 5",
    "(x BETWEEN 1 AND 5) IS TRUE",
    "(x BETWEEN 1 AND 5) BETWEEN b AND (n BETWEEN 0 AND 2)",
    "(x > 1) IS FALSE",
    "(x > 1) = (d > 1)",
    "(x > 1) <=> NULL",
    "nullif(x, 5) > 1",
    "coalesce(x, 0) >= 0",
    "try_cast(x AS INT) > 5",
    "CAST(x AS STRING) LIKE '5%'",
    "CAST(x AS DECIMAL(21, 1)) IN (2.5, 5.0)",
    "y = 300",
    "d = 0.1",
    "d + 1.0D >= 1.0D",
    "d < CAST('NaN' AS DOUBLE)",
    "d > -double('Infinity')",
    "isnan(d)",
    "coalesce(d, `Ü`) >= 0",
    "b < true",
    "b <= true",
    "b >= false",
    "b IS NOT TRUE",
    "b <=> NULL",
    "b <=> false",
    "nvl(b, true)",
    "CASE WHEN x > 1 THEN b ELSE d > 1 END",
    "true",
    "x > 5 OR false",
    "CAST(NULL AS BOOLEAN)",
    "s = NULL",
    "s = 'a'",
    's <=> `a "b".c`',
    "s COLLATE UTF8_LCASE = 'a'",
    "s = 'A' COLLATE UTF8_LCASE",
    "s IN ('A' COLLATE UTF8_LCASE, 'b')",
    "s LIKE 'a!%' ESCAPE '!'",
    "s ILIKE 'A%'",
    "s RLIKE 'a'",
    "s LIKE 'a%\U0001f600b'",
    "s LIKE '\U0001f600%\U0001f600'",
    "s LIKE ANY ('a%', '%b')",
    "length(s) > 1",
    "lower(s) = 'a'",
    "s || 'b' = 'ab'",
    "try_cast(s AS BIGINT) = 5",
    "topic = ''",
    "topic <> 'a'",
    "topic IS NULL",
    "topic IS NOT NULL",
    "position > 20",
    "_rejected IS NULL",
    "_rejected IS NOT NULL OR x > 5",
    "attributes IS NOT NULL",
    "attributes['p'] IS NULL",
    "attributes['p'] IS NOT NULL",
    "attributes['p'].i IS NULL",
    "attributes['topic'] IS NULL",
    "attributes['topic'].s = 'a'",
    "attributes['topic'].s <=> NULL",
    "attributes[s].i > 1",
    "attributes[''].i > 1",
    "map_contains_key(attributes, 'p')",
    "coalesce(attributes.p.i, attributes.p.f) = 9007199254740992D",
    "coalesce(attributes.p.i, attributes.x.i) > 1",
    "attributes.p.i + attributes.p.f > 1",
)

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def condition(random: Random, depth: int, *, opaque: bool) -> Condition:
    """A random condition; without `opaque`, of nothing but what filters can say, too."""
    if depth and random.random() < 0.75:
        left = condition(random, depth - 1, opaque=opaque)
        if random.random() < 0.3:
            return Condition(f"NOT ({left.sql})", left.pushable, left.exact)
        right = condition(random, depth - 1, opaque=opaque)
        # NOT may turn AND into OR: only where both sides are pushable is the whole, whatever is around it.
        joined = f"({left.sql}) {random.choice(('AND', 'OR'))} ({right.sql})"
        return Condition(joined, left.pushable and right.pushable, left.exact and right.exact)
    if opaque and random.random() < 0.3:
        return Condition(random.choice(TRAPS), False, False)
    return random.choice(LEAVES)(random)


def name(of: str) -> str:
    return f"`{of}`"


def text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def number(random: Random, value: int | float) -> str:
    if isinstance(value, float):
        return f"{value!r}D"
    if value == -(2**63):
        return "(-9223372036854775807L - 1L)"
    return str(value) if abs(value) < 2**31 and random.random() < 0.5 else f"{value}L"


def _exact(sql: str) -> Condition:
    return Condition(sql, pushable=True, exact=True)


def _whole(random: Random) -> Condition:
    column = random.choice(tuple(INTEGER_BITS))
    sides = [name(column), number(random, random.choice([v for v in WHOLE if v != -(2**63)]))]
    if random.random() < 0.3:
        sides.reverse()
    return _exact(f" {random.choice(COMPARISONS)} ".join(sides))


def _whole_against_float(random: Random) -> Condition:
    column = random.choice(tuple(INTEGER_BITS))
    value = random.choice([v for v in FLOATS if abs(v) < 2**53 or column in ("n", "y")])
    return _exact(f"{name(column)} {random.choice(COMPARISONS)} {number(random, value)}")


def _float(random: Random) -> Condition:
    value = random.choice((*FLOATS, *(v for v in WHOLE if abs(v) < 2**53)))
    return _exact(f"{name(random.choice(DOUBLES))} {random.choice(COMPARISONS)} {number(random, value)}")


def _text(random: Random) -> Condition:
    column = name(random.choice((*STRINGS, "topic")))
    return _exact(f"{column} {random.choice(COMPARISONS)} {text(random.choice(TEXTS + TOPICS))}")


def _pattern(random: Random) -> Condition:
    column = name(random.choice((*STRINGS, "topic")))
    match random.randrange(5):
        case 0 | 1:
            function = random.choice(("startswith", "endswith", "contains"))
            return _exact(f"{function}({column}, {text(random.choice(TEXTS))})")
        case 2:
            return _exact(f"{column} LIKE {text(random.choice(('a!%', '!!', '!_%', 'a%', '!%b%')))} ESCAPE '!'")
        case _:
            return _exact(f"{column} LIKE {text(random.choice(PATTERNS))}")


def _list(random: Random) -> Condition:
    column = random.choice(("x", "n", "d", "or", *STRINGS))
    pool: tuple[Any, ...] = {"d": FLOATS, "s": TEXTS, 'a "b".c': TEXTS}.get(column, WHOLE[:-3])
    # Spark keeps more than ten in a set.
    items = [random.choice(pool) for _ in range(random.choice((1, 2, 3, 12)))]
    written = [text(item) if isinstance(item, str) else number(random, item) for item in items]
    return _exact(f"{name(column)} IN ({', '.join(written)})")


def _range(random: Random) -> Condition:
    low, high = (number(random, random.choice(WHOLE)) for _ in range(2))
    return _exact(f"x BETWEEN {low} AND {high}")


def _boolean(random: Random) -> Condition:
    return _exact(
        random.choice(("b", "NOT B", "b = true", "false = b", "b <> true", "b IN (true)", "b IN (true, false)"))
    )


def _two_columns(random: Random) -> Condition:
    pairs = [("x", "n"), ("x", "or"), ("n", "d"), ("y", "n"), ("d", "Ü"), STRINGS, ("s", "topic"), ("y", "d")]
    left, right = random.choice(pairs)
    return _exact(f"{name(left)} {random.choice(COMPARISONS)} {name(right)}")


def _decimal(random: Random) -> Condition:
    value = random.choice(("2.5", "5.0", "0.5", "100.00", "-5.0"))
    return _exact(random.choice(("x IN ({}, 1)", "d > {}", "n <= {}", "d = {}")).format(value))


def _entry(random: Random) -> Condition:
    """Attributes in the map. A filter does not tell a whole number from a float."""
    item = random.choice(("attributes['{}']", "attributes.{}", "element_at(attributes, '{}')"))
    item = item.format(random.choice(("p", "p", "x", "d", "s", "b")))
    compare = random.choice(COMPARISONS)
    small = random.choice([v for v in FLOATS if abs(v) < 2**53])
    sql = random.choice(
        (
            f"{item}.i {compare} {number(random, random.choice(WHOLE))}",
            f"{item}.F {compare} {number(random, random.choice(FLOATS))}",
            f"{item}.s {compare} {text(random.choice(TEXTS))}",
            f"coalesce({item}.i, {item}.f) {compare} {number(random, small)}",
            f"{item}.b",
            f"{item}.s LIKE {text(random.choice(PATTERNS))}",
        )
    )
    return Condition(sql, pushable=True, exact=False)


LEAVES: tuple[Callable[[Random], Condition], ...]
LEAVES = (_whole, _whole_against_float, _float, _text, _pattern, _pattern, _list, _range, _boolean, _two_columns)
LEAVES += (_decimal, _entry, _entry)
