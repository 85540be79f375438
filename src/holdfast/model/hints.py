"""What a filter says and its writer probably does not mean: never an error, and told to whoever writes it.

In most languages `country = "UK"` compares with a text. Here, as in SQL, it compares two attributes; there is none of
the name UK, so that nothing ever matches, and nothing is wrong.
"""

from __future__ import annotations

from holdfast.model.lexer import KEYWORDS, NAME, SYMBOL, Token, is_name_part, is_name_start, tokens_of
from holdfast.model.limits import FilterLimits

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
IN_DOUBLE_QUOTES = "what stands in double quotes is a name, and a string is in single quotes"


def hints_of(text: str, limits: FilterLimits) -> tuple[str, ...]:
    """One for each comparison of two attributes of which one is in double quotes, as a text would be elsewhere."""
    tokens = tokens_of(text, limits)
    found = []
    for left, (kind, symbol, _), right in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if kind is not SYMBOL or symbol not in COMPARISONS or left[0] is not NAME or right[0] is not NAME:
            continue
        if _is_quoted(right, text):
            found.append(_hint(right, text))
        elif _is_quoted(left, text) and not _needs_quotes(str(left[1])):
            found.append(_hint(left, text))
    return tuple(found)


def _is_quoted(token: Token, text: str) -> bool:
    return text[token[2]] == '"'


def _needs_quotes(name: str) -> bool:
    return not (is_name_start(name[0]) and all(map(is_name_part, name))) or name.upper() in KEYWORDS


def _hint(token: Token, text: str) -> str:
    name = str(token[1])
    string = name.replace("'", "''")
    return f"column {token[2] + 1}: \"{name}\" is the name of an attribute; if it is a text, write '{string}'"
