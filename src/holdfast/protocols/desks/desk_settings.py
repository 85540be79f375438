"""Times and sizes of the broker's side of sessions."""

from __future__ import annotations

import msgspec

from holdfast.kernel.time import MILLISECOND, SECOND


class DeskSettings(msgspec.Struct, frozen=True, gc=False):
    """Times and sizes of the broker's side."""

    publish_window: int = 4_096  # events that a client may have unanswered
    deliver_events: int = 1_024  # in one message
    deliver_bytes: int = 128 * 1024  # so that it comes in one read, and stays in a processor's cache on its way
    # What waits for a slow link. Events take up to half of it, those beyond wait in their subscriptions; so there is
    # room for answers, and a client that goes on asking without reading is cut off.
    unread_bytes_max: int = 8 * 1024 * 1024
    queue_bytes_max: int = 4 * 1024 * 1024
    named_max: int = 10_000  # subscriptions that a client may speak of in one message
    held_bytes_max: int = 8 * 1024 * 1024  # of one publisher that waits; what is not held comes again
    window_max: int = 65_536  # events that a client may ask to be sent ahead
    # What is not confirmed is sent again; doubled each time. Clients tell of little after a second only.
    repeat_after: int = 3 * SECOND
    repeat_after_max: int = 8 * SECOND
    repeat_pause: int = 100 * MILLISECOND  # when the client asks
    tick: int = 500 * MILLISECOND
    silent_after: int = 15 * SECOND  # a link on which nothing comes is closed
    away_after: int = 120 * SECOND  # the subscriptions of a client that does not come back are dropped
    # An event that expired while its client had it is given up so much later: by then a client that got it on time has
    # said so, and it counts as such.
    expire_after: int = 1 * SECOND
    block_max: int = 10 * SECOND  # longest that a publisher waits for a subscription
    alternates: tuple[str, ...] = ()  # addresses that clients may try if this broker fails
    redirect: tuple[str, ...] = ()  # send every client there
    reissue: bool = False  # clients are asked to subscribe again to what this broker forgot
    leader_within: int = 1 * SECOND  # a client that opens a session waits so long for the group to have a leader
