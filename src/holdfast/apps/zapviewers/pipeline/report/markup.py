"""Elements of a page, and their text. Everything is escaped here, whoever wrote it, and so nowhere else.

The text is HTML and well-formed XML at once: what a strict parser takes, no browser has to guess about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_VOID = frozenset({"meta", "br"})
# What neither XML nor HTML has a place for: control characters, halves of a pair, the last two of the first plane.
_NO_TEXT = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
_JOINERS = "\u200c\u200d"  # which emoji and several scripts need
FIRST_STRONG, END_OF_ISOLATE = "\u2068", "\u2069"


@dataclass(frozen=True, slots=True)
class Element:
    """One element; what is in it is text or elements."""

    tag: str
    children: tuple[Element | str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)


Content = Element | str


def element(tag: str, *children: Content, **attributes: str | float) -> Element:
    """An element. Attributes that are words of Python have a `_` at their end; elsewhere it is `-`: `aria_label`."""
    named = {name.rstrip("_").replace("_", "-"): _number(value) for name, value in attributes.items()}
    return Element(tag, children, named)


def style_sheet(text: str) -> Element:
    """Rules, as they are: their text is ours, and has nothing that would need to be escaped."""
    if set("<>&") & set(text):
        raise ValueError("a style sheet with '<', '>' or '&' would be read otherwise as XML than as HTML")
    return Element("style", (text,))


def render(root: Element) -> str:
    """The text of an element and all that is in it."""
    pieces: list[str] = []
    _render(root, pieces)
    return "".join(pieces)


def shown(text: str) -> str:
    """Text of somebody else, as it may be shown: signs that can't be seen, or that turn others around, are replaced."""
    return "".join(sign if sign.isprintable() or sign in _JOINERS else "\ufffd" for sign in text)


def name(text: str) -> Element:
    """Somebody else's name within our text: it may be written from right to left, ours goes on as it was."""
    return element("bdi", shown(text))


def isolated(text: str) -> str:
    """The same for text that has no elements in it, such as that of a `<title>`."""
    return f"{FIRST_STRONG}{shown(text)}{END_OF_ISOLATE}"


def joined(parts: Iterable[Content], between: str) -> list[Content]:
    """The parts with a text between them."""
    result: list[Content] = []
    for part in parts:
        result += [between, part] if result else [part]
    return result


def _render(node: Element, pieces: list[str]) -> None:
    pieces.append(f"<{node.tag}")
    pieces += [f' {name}="{_escape(value)}"' for name, value in node.attributes.items()]
    if node.tag in _VOID:
        pieces.append("/>")
        return
    pieces.append(">")
    for child in node.children:
        if isinstance(child, Element):
            _render(child, pieces)
        else:
            # A browser takes the text of a style sheet as it stands; `style_sheet` has seen that XML does, too.
            pieces.append(child if node.tag == "style" else _escape(child))
    pieces.append(f"</{node.tag}>")


def _escape(text: str) -> str:
    return _NO_TEXT.sub("\ufffd", text).translate(_ESCAPES)


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
