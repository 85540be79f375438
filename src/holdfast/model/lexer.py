"""Filter text to tokens: one pass over the characters, nothing looked at twice.

Keywords are found here, in any case; names keep theirs. A token is a plain tuple (kind, value, offset):
filters are parsed by the million, and a class per token would double the time.

Names are made of what Java's identifiers are made of, but for characters that nobody sees (format characters, such as
those that turn the direction of text around): these are taken in double quotes only, where they are meant. Numbers are
those of Java, but for octal ones and floats of 32 bits, which nobody means: both are refused, and not read as something
else.
"""

from __future__ import annotations

from typing import TypeAlias
from unicodedata import category

from holdfast.errors import FilterError
from holdfast.model.limits import FilterLimits

NAME, NUMBER, STRING, SYMBOL, KEYWORD, END = "name", "number", "string", "symbol", "keyword", "end"

Token: TypeAlias = tuple[str, str | int | float, int]

KEYWORDS = frozenset(
    {"AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE"},
)
LONGEST_KEYWORD = max(map(len, KEYWORDS))
TWO_CHARACTER_SYMBOLS = frozenset({"<=", ">=", "<>", "!="})
ONE_CHARACTER_SYMBOLS = frozenset("=<>+-*/%(),")
DIGITS = frozenset("0123456789")
DIGITS_OF_BASES = {"x": (16, frozenset("0123456789abcdefABCDEF")), "b": (2, frozenset("01"))}
# Unicode's categories, beside letters, `_` and `$`: letters that are numbers, what connects words, currency signs.
NAME_START_CATEGORIES = frozenset({"Nl", "Pc", "Sc"})
# Beside those, letters, numbers of all kinds, `_`, `.` and `$`: marks that combine with a letter.
NAME_PART_CATEGORIES = NAME_START_CATEGORIES | {"Mn", "Mc"}
# Far more digits than an integer of 64 bits or a double can use, and few enough that Python's own limit on
# the conversion of long integers (a plain ValueError) is never met.
NUMBER_CHARACTERS_MAX = 1000


def tokens_of(text: str, limits: FilterLimits) -> list[Token]:
    """All tokens of `text`, closed by one END token."""
    tokens: list[Token] = []
    append = tokens.append
    length = len(text)
    at = 0
    while at < length:
        character = text[at]
        if character.isspace():
            at += 1
        elif character.isalpha() or character in "_$" or (character > "\x7f" and is_name_start(character)):
            end = at + 1
            while end < length and (
                (c := text[end]).isalnum() or c in "_.$" or (c > "\x7f" and category(c) in NAME_PART_CATEGORIES)
            ):
                end += 1
            word = text[at:end]
            # Only ASCII spells a keyword: a dotless i has the capital I too, and is a letter of a name.
            if end - at <= LONGEST_KEYWORD and (upper := word.upper()) in KEYWORDS and word.isascii():
                append((KEYWORD, upper, at))
            else:
                append((NAME, _checked_name(word, text, at, limits), at))
            at = end
        elif character in DIGITS or (character == "." and text[at + 1 : at + 2] in DIGITS):
            number, end = _number(text, at)
            append((NUMBER, number, at))
            at = end
        elif character == "'":
            string, end = _quoted(text, at, "'", "string")
            append((STRING, string, at))
            at = end
        elif character == '"':
            name, end = _quoted(text, at, '"', "quoted name")
            if not name:
                raise FilterError("a quoted name is empty", text, at, "at least one character between the quotes")
            append((NAME, _checked_name(name, text, at, limits), at))
            at = end
        elif (pair := text[at : at + 2]) in TWO_CHARACTER_SYMBOLS:
            append((SYMBOL, "<>" if pair == "!=" else pair, at))
            at += 2
        elif character in ONE_CHARACTER_SYMBOLS:
            append((SYMBOL, character, at))
            at += 1
        else:
            unseen = category(character) == "Cf"
            expected = "double quotes around a name that holds it" if unseen else "a name, a literal or an operator"
            raise FilterError(f"unexpected character {character!r}", text, at, expected)
    append((END, "", length))
    return tokens


def is_name_start(character: str) -> bool:
    """Whether a name may begin with it."""
    return character.isalpha() or character in "_$" or category(character) in NAME_START_CATEGORIES


def is_name_part(character: str) -> bool:
    """Whether a name that has begun may go on with it."""
    return character.isalnum() or character in "_.$" or category(character) in NAME_PART_CATEGORIES


def _checked_name(name: str, text: str, at: int, limits: FilterLimits) -> str:
    if len(name) * 4 > limits.name_bytes and (size := len(name.encode())) > limits.name_bytes:
        raise FilterError(
            f"a name of {size} bytes exceeds the limit name_bytes = {limits.name_bytes}", text, at, "a shorter name"
        )
    return name


def _quoted(text: str, at: int, quote: str, what: str) -> tuple[str, int]:
    """The content of a quoted piece, doubled quotes undone, and the offset behind it."""
    parts: list[str] = []
    start = at + 1
    while True:
        end = text.find(quote, start)
        if end < 0:
            raise FilterError(f"a {what} is not closed", text, at, f"a closing {quote}")
        if text[end + 1 : end + 2] != quote:
            break
        parts.append(text[start : end + 1])
        start = end + 2
    parts.append(text[start:end])
    return "".join(parts), end + 1


def _number(text: str, at: int) -> tuple[int | float, int]:
    if text[at] == "0" and (based := DIGITS_OF_BASES.get(text[at + 1 : at + 2].lower())) is not None:
        base, digits = based
        end = _digits_end(text, at + 2, digits)
        if end == at + 2:
            raise FilterError("a number has no digits", text, end, f"digits behind {text[at:end]}")
        _check_length(text, at, end)
        return int(text[at + 2 : end].replace("_", ""), base), _number_end(text, end, "lL")
    end = _digits_end(text, at)
    is_integer = True
    if text[end : end + 1] == ".":
        is_integer = False
        end = _digits_end(text, end + 1)
    if text[end : end + 1] in ("e", "E"):
        exponent = end + 1
        if text[exponent : exponent + 1] in ("+", "-"):
            exponent += 1
        if text[exponent : exponent + 1] not in DIGITS:
            raise FilterError("an exponent has no digits", text, end, "digits behind the E")
        is_integer = False
        end = _digits_end(text, exponent)
    _check_length(text, at, end)
    digits_alone = text[at:end].replace("_", "")
    if text[end : end + 1] in ("f", "F"):
        raise FilterError("a number ends with f, and there are no floats of 32 bits", text, end, "the same without f")
    if is_integer and text[end : end + 1] not in ("d", "D"):
        if digits_alone[0] == "0" and len(digits_alone) > 1:
            raise _octal(digits_alone, text, at)
        return int(digits_alone), _number_end(text, end, "lL")
    number = float(digits_alone)
    if number - number != 0.0:
        raise FilterError("a number is too large for a double", text, at, "a magnitude below 1.8e308")
    return number, _number_end(text, end, "dD")


def _digits_end(text: str, at: int, digits: frozenset[str] = DIGITS) -> int:
    """Behind the digits, which may have underscores between them."""
    end = at
    while (character := text[end : end + 1]) in digits or (character == "_" and end > at):
        end += 1
    if text[end - 1] == "_" and end > at:
        raise FilterError("a number ends with an underscore", text, end - 1, "underscores between digits only")
    return end


def _number_end(text: str, end: int, suffixes: str) -> int:
    """Behind the letter that may tell the type of a number, and behind which no other may follow."""
    if end < len(text) and text[end] in suffixes:
        end += 1
    if end < len(text) and is_name_part(text[end]):
        raise FilterError(
            f"unexpected character {text[end]!r} in a number", text, end, "digits, or a space behind the number"
        )
    return end


def _check_length(text: str, at: int, end: int) -> None:
    if end - at > NUMBER_CHARACTERS_MAX:
        raise FilterError("a number has too many digits", text, at, f"at most {NUMBER_CHARACTERS_MAX} characters")


def _octal(digits: str, text: str, at: int) -> FilterError:
    """JMS reads 035 as Java does, as 29; nearly everybody who writes it means 35."""
    decimal = digits.lstrip("0") or "0"
    is_another = len(decimal) > 1 and not set(decimal) - set("01234567")
    octal = f", or {int(decimal, 8)} if it was meant as octal" if is_another else ""
    return FilterError("an integer begins with 0", text, at, f"{decimal}{octal}")
