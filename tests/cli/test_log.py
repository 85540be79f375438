"""`holdfast log`: inspect, verify, repair and export, on good folders and bad ones."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from holdfast.cli.lines import EventLine, read_line
from holdfast.cli.main import BAD_INPUT, main
from holdfast.errors import RecordsLost, StateLost
from holdfast.model.event import Event, encode_batch, encode_event
from holdfast.protocols.core.commands import CoreState, LoggedEvents
from holdfast.runtime.segment_storage import SegmentStorage
from holdfast.schemes.catalogue import RECORDS
from holdfast.storage import Log, LogSettings, open_log

Call = Callable[..., tuple[int, str, str]]
SETTINGS = LogSettings(segment_bytes=32 * 1024, prepare_ahead=False)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """`holdfast log …`: its exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["log", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def write(folder: Path) -> Log:
    log = open_log(str(folder), SETTINGS)
    for number in range(100):
        log.append("events", 1, b"<%d>" % number * 100, count=10)
        log.commit()
    return log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "log").close()
    return tmp_path / "log"


@pytest.fixture
def damaged(folder: Path) -> Path:
    path = folder / "0000000001.segment"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"<7>", b"<8>", 1))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_inspect_tells_what_is_there_and_changes_nothing(call: Call, folder: Path) -> None:
    before = contents(folder)
    code, out, _ = call("inspect", str(folder))
    assert code == 0
    assert out.splitlines()[0].endswith("format 2, checksums in c: clean")
    assert "stream events: first 1, next 1001; 100 records" in out
    assert contents(folder) == before


def test_inspect_may_look_while_the_log_is_open(call: Call, tmp_path: Path) -> None:
    log = write(tmp_path / "log")
    code, out, _ = call("inspect", str(tmp_path / "log"), "--json")
    report = json.loads(out)
    assert (code, report["verdict"], report["log_id"]) == (0, "clean", log.log_id)
    assert report["streams"][0]["next"] == 1001
    log.append("events", 1, b"still open")
    log.commit()
    log.close()


def test_verify_is_content_with_a_whole_log(call: Call, folder: Path) -> None:
    assert call("verify", str(folder))[0] == 0


def test_verify_fails_and_names_every_damaged_range(call: Call, damaged: Path) -> None:
    path = damaged / "0000000002.segment"
    path.write_bytes(path.read_bytes().replace(b"<90>", b"<91>", 1))
    code, out, _ = call("verify", str(damaged), "--json")
    report = json.loads(out)
    assert (code, report["verdict"]) == (1, "corrupt")
    assert [Path(damage["file"]).name for damage in report["damages"]] == ["0000000001.segment", "0000000002.segment"]
    assert [damage["streams"] for damage in report["damages"]] == [{"events": [71, 81]}, {"events": [901, 911]}]
    assert "DAMAGED" in call("verify", str(damaged))[1]


def test_repair_asks_before_it_gives_anything_up(call: Call, damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(damaged)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, _, err = call("repair", str(damaged))
    assert code == 2
    assert "--yes" in err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert call("repair", str(damaged))[0] == 2
    assert contents(damaged) == before
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert call("repair", str(damaged))[0] == 0


def test_repair_says_what_is_lost_and_keeps_the_damaged_file(call: Call, damaged: Path) -> None:
    before = contents(damaged)["0000000001.segment"]
    code, out, _ = call("repair", str(damaged), "--yes")
    assert code == 0
    assert "lost: stream 'events', numbers 71 to 80" in out
    assert (damaged / "0000000001.damaged-1").read_bytes() == before
    assert call("verify", str(damaged))[0] == 0
    assert "repaired:" in call("inspect", str(damaged))[1]
    log = open_log(str(damaged), SETTINGS)
    with pytest.raises(RecordsLost):
        log.read("events", 75)
    assert log.read("events", 81, 1)[0][4].startswith(b"<8>")
    log.close()


def test_repair_of_a_whole_log_does_nothing(call: Call, folder: Path) -> None:
    before = contents(folder)
    assert call("repair", str(folder), "--yes")[:2] == (0, "nothing is damaged; nothing was done\n")
    assert json.loads(call("repair", str(folder), "--json")[1])["needed"] is False
    assert contents(folder) == before


@pytest.mark.parametrize("action", ["inspect", "verify", "repair"])
def test_a_folder_without_a_log_is_bad_input(call: Call, tmp_path: Path, action: str) -> None:
    assert call(action, str(tmp_path))[0] == 2
    assert call(action, str(tmp_path / "absent"))[0] == 2


def test_an_open_log_is_not_repaired(call: Call, damaged: Path) -> None:
    log = open_log(str(damaged), SETTINGS)
    code, _, err = call("repair", str(damaged), "--yes")
    assert (code, "another process" in err) == (2, True)
    log.close()


def test_a_log_without_a_readable_header_can_not_be_repaired_and_stays_as_it_is(call: Call, folder: Path) -> None:
    for path in folder.glob("*.segment"):
        data = bytearray(path.read_bytes())
        data[16] ^= 255
        path.write_bytes(data)
    before = contents(folder)
    code, _, err = call("repair", str(folder), "--yes")
    assert code != 0
    assert "the headers of all its segments are damaged" in err
    assert contents(folder) == before


# -------------------------------------------------------------------------------------------------------------- export
EVENTS_WRITTEN = [
    Event("p", 1, number, "t" if number % 2 else "", {"n": number, "text": "ü"}, b"\x00" * (number % 3), 7, lifetime)
    for number, lifetime in zip(range(1, 61), cycle([0, 1_500_000]))
]


@pytest.fixture
def with_events(tmp_path: Path) -> Path:
    """A log as brokers write them: state beside events, three events a record."""
    log = open_log(str(tmp_path / "log"), SETTINGS)
    for first in range(1, 61, 3):
        batch = encode_batch([encode_event(event) for event in EVENTS_WRITTEN[first - 1 : first + 2]])
        log.append("state", *RECORDS.encode(CoreState(first, b"x" * 500)))
        log.append("events", *RECORDS.encode(LoggedEvents(first, 8, batch)), count=3)
        log.commit()
    log.close()
    return tmp_path / "log"


def exported(capsysbinary: pytest.CaptureFixture[bytes], folder: Path) -> tuple[list[EventLine], str]:
    assert main(["log", "export", str(folder)]) == 0
    captured = capsysbinary.readouterr()
    lines = [read_line(line, number) for number, line in enumerate(captured.out.splitlines(), 1)]
    return lines, captured.err.decode()


def as_line(event: Event) -> EventLine:
    lifetime_ms = 2 if event.lifetime else 0
    return EventLine(
        topic=event.topic, attributes=dict(event.attributes), payload=event.payload, lifetime_ms=lifetime_ms
    )


def test_events_are_exported_as_publish_reads_them(
    capsysbinary: pytest.CaptureFixture[bytes], with_events: Path
) -> None:
    lines, told = exported(capsysbinary, with_events)
    assert lines == list(map(as_line, EVENTS_WRITTEN))
    assert "60 events were written" in told


def test_what_a_repair_lost_is_told_and_the_rest_is_exported(
    capsysbinary: pytest.CaptureFixture[bytes], with_events: Path
) -> None:
    path = with_events / "0000000001.segment"
    data = bytearray(path.read_bytes())
    data[data.index(encode_event(EVENTS_WRITTEN[30])) + 5] ^= 0x40
    path.write_bytes(data)
    assert main(["log", "repair", str(with_events), "--yes"]) == 0
    capsysbinary.readouterr()
    lines, told = exported(capsysbinary, with_events)
    lost = {int(number) for number in re.findall(r"positions (\d+) to", told)}
    assert lost
    assert min(lost) <= 31
    kept = [line for line in map(as_line, EVENTS_WRITTEN) if line in lines]
    assert lines == kept
    assert len(lines) >= 30


def test_a_broker_that_has_lost_its_state_says_how_to_take_its_events_along(
    capsysbinary: pytest.CaptureFixture[bytes], with_events: Path
) -> None:
    path = with_events / "0000000001.segment"
    data = bytearray(path.read_bytes())
    data[data.index(b"x" * 500, data.index(b"x" * 500) + 600) + 100] ^= 1  # in the second commit
    path.write_bytes(data)
    assert main(["log", "repair", str(with_events), "--yes"]) == 0
    capsysbinary.readouterr()

    async def start() -> None:
        SegmentStorage(str(with_events), RECORDS).start(lambda token: None, lambda reason: None)

    with pytest.raises(StateLost, match=f"stream 'state', 2 to 2.*`holdfast log export {with_events}`"):
        asyncio.run(start())
    lines, _ = exported(capsysbinary, with_events)
    assert lines == list(map(as_line, EVENTS_WRITTEN[:3] + EVENTS_WRITTEN[6:])), "all but the damaged commit's"


def test_export_makes_no_log(call: Call, tmp_path: Path) -> None:
    code, _, err = call("export", str(tmp_path / "typo"))
    assert code == BAD_INPUT
    assert "typo" in err
    assert list(tmp_path.iterdir()) == []
