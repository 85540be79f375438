"""What was ever written stays readable: the golden bytes never change."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.model.event import Event
from holdfast.protocols.core import commands
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from tests.codec.examples import (
    COMMAND_EXAMPLES,
    COMMANDS,
    EVENT,
    EVENTS,
    MESSAGE_EXAMPLES,
    RECORD_EXAMPLES,
    examples_of,
    names_of,
    plain,
)
from tests.repository import ROOT

GOLDEN = Path(__file__).parent / "golden" / "bytes.txt"


def golden_lines(text: str) -> list[tuple[str, str, int, bytes]]:
    """(family, name, number, body) of every line; the last of a name is how its example is written today."""
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return [(family, name, int(kind), bytes.fromhex("".join(body))) for family, name, kind, *body in rows]


def examples() -> dict[tuple[str, str], Any]:
    named = {("message", name): value for name, value in examples_of(MESSAGE_EXAMPLES).items()}
    named |= {("record", name): value for name, value in examples_of(RECORD_EXAMPLES).items()}
    named |= {("command", type(command).__name__): command for command in COMMAND_EXAMPLES}
    named["event", Event.__name__] = EVENT
    return named


def decode(family: str, kind: int, body: bytes) -> Any:
    match family:
        case "message":
            return MESSAGES.decode(kind, body)
        case "record":
            return RECORDS.decode(kind, body)
        case "command":
            return COMMANDS.decode(body)
    return EVENTS.decode(body)


def kind_of(family: str, value: Any) -> int:
    if family == "command":
        return int(value.__struct_config__.tag)
    kinds: dict[str, dict[Any, int]] = {
        "message": dict(MESSAGES.kinds),
        "record": dict(RECORDS.kinds),
        "event": {Event: 0},
    }
    return kinds[family][type(value)]


EVER = golden_lines(GOLDEN.read_text())
LINES = [line for line in EVER if line[0] != "retired"]


@pytest.mark.parametrize(("family", "name", "kind", "body"), LINES, ids=[f"{line[0]}-{line[1]}" for line in LINES])
def test_golden_bytes_are_read_as_what_they_were_written_for(family: str, name: str, kind: int, body: bytes) -> None:
    value = examples()[family, name]
    assert kind_of(family, value) == kind
    shown, wanted = plain(decode(family, kind, body)), plain(value)
    # A field that the bytes are too old to hold has its default. A command's first element is its number.
    held = len(msgspec.msgpack.decode(body)) - (family == "command")
    for place, field in enumerate(msgspec.structs.fields(type(value))[held:], held + 1):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        wanted[place] = plain(default)
    assert shown == wanted


def test_every_type_has_an_example_and_a_name_of_its_own() -> None:
    assert sorted(examples_of(MESSAGE_EXAMPLES)) == names_of(MESSAGES)
    assert sorted(examples_of(RECORD_EXAMPLES)) == names_of(RECORDS)


def test_types_of_schemes_that_only_tests_have_need_no_golden_bytes() -> None:
    """In a process of its own: which schemes a test finds depends on what was imported before it."""
    program = (
        "from holdfast.broker.registry import SCHEMES; SCHEMES.add('flood', 'tests.schemes.flood')\n"
        "from holdfast.schemes.catalogue import MESSAGES\n"
        "from tests.codec.examples import MESSAGE_EXAMPLES, examples_of, names_of\n"
        "assert MESSAGES.types[200].__name__ == 'Flooded'\n"
        "assert sorted(examples_of(MESSAGE_EXAMPLES)) == names_of(MESSAGES)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_every_type_has_golden_bytes_and_is_written_as_the_newest_say() -> None:
    newest = {(family, name): (kind, body) for family, name, kind, body in LINES}
    written = {
        (family, name): (kind_of(family, value), msgspec.msgpack.encode(value))
        for (family, name), value in examples().items()
    }
    assert written == newest


def test_every_command_has_an_example() -> None:
    assert {type(command) for command in COMMAND_EXAMPLES} == set(commands.Command.__args__)


def test_no_number_stands_for_two_types() -> None:
    for family in ("message", "record", "command"):
        pairs = {(kind, name) for found, name, kind, _ in LINES if found == family}
        assert len({kind for kind, _ in pairs}) == len(pairs)


def test_the_number_of_a_message_that_is_not_spoken_any_more_stands_for_nothing() -> None:
    retired = {kind for family, _, kind, _ in EVER if family == "retired"}
    assert retired == {25, 44, 45}
    assert retired.isdisjoint(MESSAGES.types)


def test_a_changed_byte_of_a_golden_line_is_caught() -> None:
    family, name, kind, body = next(line for line in LINES if line[1] == "Dropped")
    changed = body[:-1] + bytes([body[-1] ^ 1])
    assert plain(decode(family, kind, changed)) != plain(examples()[family, name])
