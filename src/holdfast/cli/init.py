"""`holdfast init`: writes a commented site file to start from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from holdfast.apps.zapviewers.viewership import CHANNELS_TOLD_MAX, EVERY_MS
from holdfast.broker.site import PAXOS, PLAINTEXT_ACCEPTED, SCHEMES, TREE
from holdfast.broker.site_text import DEFAULT_ADDRESS
from holdfast.cli.main import OK
from holdfast.errors import SiteError
from holdfast.protocols.cursors.host import RetentionSettings
from holdfast.protocols.paxos.settings import Protocol
from holdfast.protocols.sessions.limits import CoreLimits

_LIMITS = CoreLimits()
_RETENTION = RetentionSettings()

_LIMITS_TEXT = f"""\
[limits]                            # these are the defaults
sessions = {_LIMITS.sessions}                   # clients that the broker remembers
subscriptions_per_session = {_LIMITS.subscriptions_per_session}
advertisements_per_session = {_LIMITS.advertisements_per_session}
filter_bytes_per_session = {_LIMITS.filter_bytes_per_session}   # text of all its filters
backlog_events = {_LIMITS.backlog_events}              # that a subscription keeps at its broker …
backlog_bytes = {_LIMITS.backlog_bytes}             # … and their size
backlog_bytes_per_session = {_LIMITS.backlog_bytes_per_session} # of all subscriptions of a client
named_subscriptions = {_LIMITS.named_subscriptions}         # with data: names that the broker keeps
staged_bytes = {_LIMITS.staged_bytes}            # … events that are staged and not committed
queries = {_LIMITS.queries}                     # … queries whose last committed epoch is remembered

[retention]                         # of events in the log; 0 is for ever
bytes = {_RETENTION.bytes}
age_s = 0
bytes_hard = {_RETENTION.bytes_hard}             # also for what named subscriptions have not acknowledged

# [security]
# plaintext = "{PLAINTEXT_ACCEPTED}"            # serve addresses other than loopback, without TLS
# remote_operators = "{PLAINTEXT_ACCEPTED}"     # serve `holdfast status` and `group` of other machines too
"""

TREE_TEXT = f"""\
# A site: a broker network, described once. `holdfast up FILE` runs it here, `holdfast sim FILE` breaks it.
name = "my-site"

[scheme]
kind = "tree"                       # the schemes that there are: {", ".join(SCHEMES)}

[[broker]]
id = "b1"
address = "{DEFAULT_ADDRESS}"          # where clients connect
# peer_address = "127.0.0.1:7511"   # where other brokers connect
data = "var/b1"                     # keeps its state and its events there; leave it out to keep nothing

{_LIMITS_TEXT}"""

PAXOS_TEXT = f"""\
# A site: a broker network, described once. `holdfast up FILE` runs all of it here; `holdfast broker FILE --id r1` one
# replica of it, as you would on its own machine; `holdfast sim FILE` breaks it.
name = "my-site"

[scheme]
kind = "paxos"                      # replicas that behave as one broker: 3 survive 1 failure, 5 survive 2, 7 survive 3
protocol = "batch"                  # "batch": all that waits is decided at once; "multi": each on its own; "fast": as
                                    # "batch", and clients propose to all replicas, where enough of them are there
pipeline = 10                       # decisions that are under way at once
{
    "".join(
        f'''
[[broker]]
id = "r{number}"
address = "127.0.0.1:{7410 + number}"          # where clients connect; they are given all of them
peer_address = "127.0.0.1:{7510 + number}"     # where the other replicas connect
data = "var/r{number}"                     # what it promised and voted for must outlive it
'''
        for number in (1, 2, 3)
    )
}
{_LIMITS_TEXT}"""

_PROTOCOL_LINE = 'protocol = "batch" '


def text_of(scheme: str, protocol: str = Protocol.BATCH.value) -> str:
    """A site file; of a group, with a protocol."""
    line = f'protocol = "{protocol}" '
    return PAXOS_TEXT.replace(_PROTOCOL_LINE, line.ljust(len(_PROTOCOL_LINE))) if scheme == PAXOS else TREE_TEXT


ZAPVIEWERS_TEXT = f"""
[application]                       # who watches what: `holdfast zap publish FILE`, `holdfast zap watch FILE`
factory = "holdfast.apps.zapviewers.viewership:Viewership"

[application.settings]              # with others it is another application: they can't be changed later
every_ms = {EVERY_MS}                     # how often, at most, changes are told
channels_max = {CHANNELS_TOLD_MAX}                   # of how many channels at once; less than the limit derived_events
"""
APPLICATIONS = {"zapviewers": ZAPVIEWERS_TEXT}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", default="site.toml", help="default site.toml; '-' prints it")
    parser.add_argument(
        "--scheme", choices=SCHEMES, help="tree: one broker (default); paxos: a group of three replicas"
    )
    parser.add_argument(
        "--protocol",
        choices=[each.value for each in Protocol],
        help="of a group; batch: all that waits is decided at once (default); multi: each on its own; fast: clients"
        " propose to all replicas",
    )
    parser.add_argument("--application", choices=APPLICATIONS, help="that the brokers host (default: none)")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    scheme = arguments.scheme or (PAXOS if arguments.protocol else TREE)
    if arguments.protocol and scheme != PAXOS:
        raise SiteError("a protocol is of a group: say --scheme paxos", arguments.file)
    text = text_of(scheme, arguments.protocol or Protocol.BATCH.value) + APPLICATIONS.get(arguments.application, "")
    if arguments.file == "-":
        sys.stdout.write(text)
        return OK
    path = Path(arguments.file)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise SiteError("this file exists already; name another", str(path)) from None
    print(f"wrote {path}; now: holdfast up {path}")
    return OK
