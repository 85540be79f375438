"""Payloads of up to 200 lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.zapviewers.publications import payloads


def test_lines_are_cut_into_payloads_of_200() -> None:
    text = b"".join(b"%d\n" % number for number in range(450))
    found = list(payloads([text]))
    assert [payload.count(b"\n") + 1 for payload in found] == [200, 200, 50]
    assert b"\n".join(found) + b"\n" == text


def test_no_lines_make_no_payload() -> None:
    assert list(payloads([])) == list(payloads([b"", b""])) == []


@given(st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"")), max_size=30), st.data())
def test_it_does_not_matter_where_a_text_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + b"\n" for line in lines)
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    found = list(payloads(pieces, 3))
    assert found == [b"\n".join(lines[start : start + 3]) for start in range(0, len(lines), 3)]
