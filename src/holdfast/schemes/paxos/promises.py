"""Promises in parts: an acceptor that was restarted tells all its votes since its snapshot, more than a frame holds."""

from __future__ import annotations

import msgspec

from holdfast.schemes.paxos.messages import Promise, Vote


def split(promise: Promise, bytes_max: int) -> list[Promise]:
    """The same promise in parts, each with votes of not much more than so many bytes."""
    groups: list[list[Vote]] = [[]]
    size = 0
    for vote in promise.votes:
        if groups[-1] and size + len(vote.value) > bytes_max:
            groups.append([])
            size = 0
        groups[-1].append(vote)
        size += len(vote.value)
    last = len(groups) - 1
    return [msgspec.structs.replace(promise, votes=votes, part=n, last=last) for n, votes in enumerate(groups)]


class PromiseParts:
    """Parts that came so far, of the latest ballot that each peer promised. A part alone promises nothing that counts:
    the votes that are missing may be the ones that were chosen."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[int, Promise]] = {}

    def add(self, peer: str, promise: Promise) -> Promise | None:
        """The whole, if this was the last part that was missing."""
        known = self._parts.setdefault(peer, {})
        if any((part.ballot, part.first, part.executed, part.last) != _of(promise) for part in known.values()):
            known.clear()  # of an earlier ballot, or of an earlier answer to the same one
        known[promise.part] = promise
        if len(known) <= promise.last:
            return None
        del self._parts[peer]
        votes = [vote for part in range(promise.last + 1) for vote in known[part].votes]
        return msgspec.structs.replace(promise, votes=votes, part=0, last=0)


def _of(promise: Promise) -> tuple[int, int, int, int]:
    return promise.ballot, promise.first, promise.executed, promise.last
