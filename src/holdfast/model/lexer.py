"""Filter text to tokens: one pass over the characters, nothing looked at twice.

Keywords are found here, in any case; names keep theirs. A token is a plain tuple (kind, value, offset):
filters are parsed by the million, and a class per token would double the time.
"""

from __future__ import annotations

from typing import TypeAlias

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
        elif character.isalpha() or character in "_$":
            end = at + 1
            while end < length and ((c := text[end]).isalnum() or c in "_.$"):
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
            raise FilterError(f"unexpected character {character!r}", text, at, "a name, a literal or an operator")
    append((END, "", length))
    return tokens


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
    if end < len(text) and (text[end].isalnum() or text[end] in "_.$"):
        raise FilterError(
            f"unexpected character {text[end]!r} in a number", text, end, "digits, or a space behind the number"
        )
    if end - at > NUMBER_CHARACTERS_MAX:
        raise FilterError("a number has too many digits", text, at, f"at most {NUMBER_CHARACTERS_MAX} characters")
    if is_integer:
        return int(text[at:end]), end
    number = float(text[at:end])
    if number - number != 0.0:
        raise FilterError("a number is too large for a double", text, at, "a magnitude below 1.8e308")
    return number, end


def _digits_end(text: str, at: int) -> int:
    while text[at : at + 1] in DIGITS:
        at += 1
    return at
