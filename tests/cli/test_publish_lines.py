"""`holdfast publish` with lines that come slowly, come late, or make no sense."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from holdfast.cli.lines import LIFETIME_MS_MAX, read_line
from holdfast.cli.standard_input import LINE_BYTES_MAX, PIECE, PIECES_AHEAD, lines_from
from holdfast.errors import EventError
from tests.cli.test_main import run
from tests.runtime.broker_process import BrokerProcess

CLI = [sys.executable, "-m", "holdfast.cli"]


def test_lines_are_published_as_they_come_and_not_when_the_input_ends(tmp_path_factory: pytest.TempPathFactory) -> None:
    with BrokerProcess(tmp_path_factory.mktemp("site")) as broker:
        where = ["--url", broker.url]
        with (
            subprocess.Popen([*CLI, "subscribe", *where, "--count", "2"], stdout=-1, stderr=-1) as subscriber,
            subprocess.Popen([*CLI, "publish", *where], stdin=-1, stderr=-1) as publisher,
        ):
            assert subscriber.stderr is not None
            assert subscriber.stdout is not None
            assert publisher.stdin is not None
            while subscriber.stderr.readline() != b"subscribed\n":
                pass
            for number in (b"1", b"2"):
                publisher.stdin.write(b'{"attributes": {"n": ' + number + b"}}\n")
                publisher.stdin.flush()
                assert b'{"n":' + number + b"}" in subscriber.stdout.readline()  # the input is still open
            assert publisher.communicate(timeout=20)[1] == b"2 published\n"


async def lines_through_a_pipe(*pieces: bytes) -> list[bytes]:
    reading, writing = os.pipe()

    def write() -> None:
        for piece in pieces:
            assert os.write(writing, piece) == len(piece)
        os.close(writing)

    writer = asyncio.get_running_loop().run_in_executor(None, write)
    try:
        return [line async for line in lines_from(reading)]
    finally:
        await writer
        os.close(reading)


def test_lines_are_whole_however_they_are_cut() -> None:
    assert asyncio.run(lines_through_a_pipe(b"on", b"e\n\ntw", b"o\nthree")) == [b"one", b"", b"two", b"three"]
    assert asyncio.run(lines_through_a_pipe(b"one\n")) == [b"one"]
    assert asyncio.run(lines_through_a_pipe()) == []


def test_more_lines_than_are_read_ahead_all_come() -> None:
    many = [b"%07d" % number for number in range(PIECE * (PIECES_AHEAD + 2) // 8)]
    assert asyncio.run(lines_through_a_pipe(b"\n".join(many))) == many


def test_an_input_that_cannot_be_read_is_an_error_and_not_an_end() -> None:
    async def read() -> None:
        async for _ in lines_from(10_000):
            pass

    with pytest.raises(OSError, match="Bad file descriptor"):
        asyncio.run(read())


@pytest.mark.parametrize("lifetime", [-1, LIFETIME_MS_MAX + 1])
def test_a_lifetime_that_no_event_can_have_is_named_with_its_line(lifetime: int) -> None:
    with pytest.raises(EventError, match=r"line 3: Expected `int` [<>]= .*lifetime_ms"):
        read_line(f'{{"lifetime_ms": {lifetime}}}', 3)
    assert read_line(f'{{"lifetime_ms": {LIFETIME_MS_MAX}}}', 3).lifetime_ms == LIFETIME_MS_MAX


def test_a_topic_without_attributes_is_not_left_waiting_for_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("publish", "--topic", "stock") == 2
    assert "--topic is of one event: say --attributes too" in capsys.readouterr().err


def test_a_line_that_never_ends_is_refused_before_it_fills_the_memory() -> None:
    piece = b"x" * PIECE

    async def read() -> int:
        reading, writing = os.pipe()

        def write() -> int:
            """As much as is taken before the reader gives up."""
            written = 0
            try:
                os.write(writing, b"{}\n{}\n")
                while written < 4 * LINE_BYTES_MAX:
                    written += os.write(writing, piece)
            except BrokenPipeError:
                pass
            return written

        writer = asyncio.get_running_loop().run_in_executor(None, write)
        lines = lines_from(reading)
        assert [await anext(lines), await anext(lines)] == [b"{}", b"{}"]
        with pytest.raises(EventError, match=r"line 3: it has more than .* bytes, beyond line_bytes_max"):
            await anext(lines)
        os.close(reading)
        written = await writer
        os.close(writing)
        return written

    assert asyncio.run(read()) < 2 * LINE_BYTES_MAX
