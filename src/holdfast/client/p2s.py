"""The papers' programming interface: replicate a handler, ask it, publish and subscribe by topic (D4-G5).

Thin, and blocking: everything is done by the rest of Holdfast. What D4-A5 calls parts are these: the client library is
`holdfast.client`, the client handler at the servers (D4-G3) the session desk and the application desk, the replicated
cluster a group (`holdfast.schemes.paxos`), and the server application the broker's core, which hosts the handler. The
tables and queues of D4-A6 are the core's: its index is the subscription table, and the replies are kept in sessions.

    replica = new_replica(0, 1, "site.toml", Counter())     # the first replica of the group that the file describes
    replica.run()

    with dial("site.toml") as conn:                         # from anywhere
        conn.send_request(b"add 1")

A group is described by a site file, which both sides read (D4-A8); docs/p2s.md shows a whole one. It names no
application: the handler is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import queue
import threading
from types import TracebackType
from typing import Final, Protocol

import msgspec

from holdfast.broker.registry import SCHEMES
from holdfast.broker.site import ApplicationEntry, BrokerEntry
from holdfast.client.blocking import BlockingBus, BlockingSubscription
from holdfast.client.url import SCHEME
from holdfast.errors import HoldfastError, ReplicaFailed, SiteError, renewed
from holdfast.kernel.application import Derived
from holdfast.model.rendering import string_text
from holdfast.runtime import loop
from holdfast.runtime.serving import Failure, check_servable, serve, serve_until
from holdfast.runtime.site_file import read_site

CONFIG_VARIABLE: Final = "HOLDFAST_SITE"
DEFAULT_URL: Final = "holdfast://127.0.0.1:7411"


# --------------------------------------------------------------------------------------------------------- replicas
class Handler(Protocol):
    """What is replicated (D4-A9, D4-G1). It must be deterministic: equal requests in equal order give equal answers and
    states, at every replica."""

    def execute(self, request: bytes) -> bytes:
        """The answer to a request. What is raised reaches the client as ApplicationFailed, and stops nothing."""
        ...

    def get_state(self, slot_marker: int) -> tuple[int, bytes]:
        """The whole state after so many requests, and that number again (D4-B10)."""
        ...

    def set_state(self, state: bytes) -> None:
        """Replaces the whole state; the next request that is executed is the one behind its slot marker."""
        ...


class HandledRequests:
    """A handler as the core hosts it: it sees requests and no events."""

    topics: frozenset[str] = frozenset()

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._executed = 0  # requests: the slot marker

    def execute(self, request: bytes) -> bytes:
        self._executed += 1
        return self._handler.execute(request)

    def observe(self, *event: object) -> list[Derived]:
        return []

    def get_state(self) -> bytes:
        marker, state = self._handler.get_state(self._executed)
        if marker != self._executed:
            # Requests in between would have to be executed again, and snapshots are what takes their place.
            raise ValueError(f"the handler gave a state of slot {marker}, not of {self._executed}")
        return msgspec.msgpack.encode((marker, state))

    def set_state(self, state: bytes) -> None:
        self._executed, handled = msgspec.msgpack.decode(state, type=tuple[int, bytes])
        self._handler.set_state(handled)


class Replica:
    """One replica of a group, in this process. Made by `new_replica`."""

    def __init__(self, id: int, app_id: int, app: str, handler: Handler) -> None:
        site = read_site(app)
        if not site.scheme.is_one_broker:
            kinds = " or ".join(kind for kind in SCHEMES.kinds if SCHEMES[kind].is_one_broker)
            raise SiteError(f"a replica is one of a group, and this is {site.scheme.kind}: say {kinds}", app)
        if not 0 <= id < len(site.brokers):
            raise SiteError(f"there is no replica {id}; the group's are 0 to {len(site.brokers) - 1}", app)
        if site.application is not None:
            raise SiteError("the site names an application, and the handler is one: leave [application] out", app)
        check_servable(site, app)
        kind = type(handler)
        named = ApplicationEntry(factory=f"{kind.__module__}:{kind.__qualname__} of {app_id}")
        self._site = msgspec.structs.replace(site, application=named)
        self._entry = site.brokers[id]
        self._application = HandledRequests(handler)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()  # it serves, or never will
        self._problem: BaseException | None = None

    @property
    def name(self) -> str:
        """Its id in the site file."""
        return self._entry.id

    def run(self) -> None:
        """Serves in this thread, the main one, until SIGTERM or SIGINT. ReplicaFailed if it stopped by itself."""
        work = serve(self._site, [self._entry], _ignore, make_application=lambda: self._application)
        _check(loop.run(work))

    def start(self) -> None:
        """Serves in a thread of its own; returns when clients may come. Once: a replica is not started again."""
        if self._thread is not None:
            raise HoldfastError("the replica was started already: make a new one")
        self._thread = threading.Thread(target=self._serve, name=f"replica {self.name}", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            raise renewed(self._problem)

    def stop(self) -> None:
        """Stops it, and returns when its files are closed. ReplicaFailed if it had stopped by itself."""
        if self._thread is None:
            return
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it ended just now
                self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        if self._problem is not None:
            raise renewed(self._problem)

    def _serve(self) -> None:
        try:
            _check(asyncio.run(self._until_stopped()))
        except BaseException as problem:
            self._problem = problem  # for whoever starts or stops it, in another thread
        finally:
            self._ready.set()

    async def _until_stopped(self) -> Failure | None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        return await serve_until(
            self._stopping,
            self._site,
            [self._entry],
            lambda entry, port: self._ready.set(),
            make_application=lambda: self._application,
        )


def _ignore(entry: BrokerEntry, port: int) -> None:
    pass


def _check(failure: Failure | None) -> None:
    if failure is not None:
        raise ReplicaFailed(failure.reason)


def new_replica(id: int, app_id: int, app: str, handler: Handler) -> Replica:
    """Replica number `id`, from 0, of the group that the site file `app` describes, running a handler (D4-G1).

    `app_id` tells applications of one kind apart: replicas with another one, or with a handler of another class, are
    not listened to. The handler is a new one; what the replica's disk kept is given to it.
    """
    return Replica(id, app_id, app, handler)


# --------------------------------------------------------------------------------------------------------- requests
class Conn:
    """A connection to a group, wherever its leader is. Made by `dial`; use it with `with`, or close it."""

    def __init__(self, config: str, account: str = "", timeout_s: float = 10.0) -> None:
        self._bus = BlockingBus(url_of(config), account, timeout_s=timeout_s)
        self._bus.__enter__()

    def send_request(self, request: bytes, timeout_s: float | None = None) -> bytes:
        """The handler's answer. The request is executed once, also if replicas fail meanwhile (D4-B6).

        Raises what `holdfast.Bus.ask` raises.
        """
        return self._bus.ask(request, timeout_s)

    def close(self) -> None:
        self._bus.close()

    def __enter__(self) -> Conn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def dial(config: str = "") -> Conn:
    """Connects to the group that a site file describes, or a URL (D4-G1); NotConnected if nobody answers.

    Without one, the environment's HOLDFAST_SITE says which, and else it is a broker at the default address.
    """
    return Conn(config)


def url_of(config: str) -> str:
    """All addresses of a group: clients try one after the other until they have found the leader."""
    config = config or os.environ.get(CONFIG_VARIABLE, "") or DEFAULT_URL
    if config.startswith(SCHEME):
        return config
    return SCHEME + ",".join(entry.advertised for entry in read_site(config).brokers)


# ------------------------------------------------------------------------------------------- publishing, subscribing
class Kind(enum.Enum):
    """What a client asks for (D4-A7)."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"


class Request(msgspec.Struct, frozen=True):
    """What is asked, and by whom. Its number, which the papers' lack, is the session's affair (D4-B6.1)."""

    kind: Kind
    client: str
    topic: str
    content: str = ""


class Response(msgspec.Struct, frozen=True):
    """What came of it. Whom a publication reaches is decided where it is executed, and told to nobody."""

    to: Kind
    acknowledged: bool
    topic: str
    content: str = ""


class _Manager:
    """`account` is the client's name; only one client has it at a time."""

    def __init__(self, account: str, config: str = "") -> None:
        self._bus = BlockingBus(url_of(config), account)
        self._bus.__enter__()

    @property
    def account(self) -> str:
        return self._bus.name

    def close(self) -> None:
        self._bus.close()

    def __enter__(self) -> _Manager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PublicationManager(_Manager):
    """Publishes by topic (D4-G2). Made by `p_dial`."""

    def publish(self, topic: str, content: str) -> Response:
        """Returns when the publication is acknowledged."""
        request = Request(Kind.PUBLISH, self.account, topic, content)
        self._bus.publish({}, topic=request.topic, payload=request.content.encode())
        return Response(request.kind, True, topic, content)

    def __enter__(self) -> PublicationManager:
        return self


class SubscriptionManager(_Manager):
    """Subscribes by topic (D4-G2). Made by `s_dial`."""

    def __init__(self, account: str, config: str = "") -> None:
        super().__init__(account, config)
        self._subscriptions: dict[str, tuple[BlockingSubscription, threading.Thread]] = {}
        self.problems: dict[str, HoldfastError] = {}  # topic → why the broker ended its subscription

    def subscribe(self, topic: str) -> queue.Queue[list[str]]:
        """A queue of what is published from now on: lists of contents, in order. An empty list is the last one: it was
        unsubscribed, or ended, and then `problems` says why."""
        if topic in self._subscriptions:
            raise HoldfastError(f"{topic!r} is subscribed to already")
        subscription = self._bus.subscribe(f"topic = {string_text(topic)}")
        subscription.__enter__()
        notified: queue.Queue[list[str]] = queue.Queue()
        arguments = (topic, subscription, notified)
        thread = threading.Thread(target=self._await_publications, args=arguments, name=f"topic {topic}", daemon=True)
        self._subscriptions[topic] = (subscription, thread)
        thread.start()
        return notified

    def _await_publications(
        self, topic: str, subscription: BlockingSubscription, notified: queue.Queue[list[str]]
    ) -> None:
        try:
            for batch in subscription.batches():
                notified.put([event.payload.decode(errors="replace") for event in batch])
        except HoldfastError as problem:
            self.problems[topic] = problem
        finally:
            notified.put([])

    def unsubscribe(self, topic: str) -> Response:
        """Ends it; what was not taken from the queue stays there, and an empty list behind it."""
        found = self._subscriptions.pop(topic, None)
        if found is not None:
            subscription, thread = found
            subscription.close()
            thread.join()
        return Response(Kind.UNSUBSCRIBE, found is not None, topic)

    def close(self) -> None:
        for topic in list(self._subscriptions):
            self.unsubscribe(topic)
        super().close()

    def __enter__(self) -> SubscriptionManager:
        return self


def p_dial(account: str, config: str = "") -> PublicationManager:
    """Connects a publisher under a name; `config` is that of `dial`."""
    return PublicationManager(account, config)


def s_dial(account: str, config: str = "") -> SubscriptionManager:
    """Connects a subscriber under a name; `config` is that of `dial`."""
    return SubscriptionManager(account, config)
