"""Every message and every record type of all schemes, with its number: for tools that read any disk or any trace."""

from __future__ import annotations

from typing import Final

from holdfast.broker.catalogue import catalogue_of
from holdfast.broker.registry import SCHEMES
from holdfast.codec.catalogue import Catalogue
from holdfast.kernel.messages import Message, Record


def everything() -> Catalogue:
    """Of all schemes that are registered now; ValueError if two types have one number."""
    messages: dict[int, type[Message]] = {}
    records: dict[int, type[Record]] = {}
    large: dict[type[Message], None] = {}
    for kind in SCHEMES.kinds:
        catalogue = SCHEMES[kind].catalogue
        for number, message in catalogue.messages.types.items():
            if messages.setdefault(number, message) is not message:
                raise ValueError(f"{message.__name__} and {messages[number].__name__} both have number {number}")
        for number, record in catalogue.records.types.items():
            if records.setdefault(number, record) is not record:
                raise ValueError(f"{record.__name__} and {records[number].__name__} both have number {number}")
        large |= dict.fromkeys(catalogue.messages.types[number] for number in sorted(catalogue.large_kinds))
    return catalogue_of("", messages, records, large)


CATALOGUE: Final = everything()
MESSAGES: Final = CATALOGUE.messages
RECORDS: Final = CATALOGUE.records
