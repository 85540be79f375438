"""`holdfast init`: writes a commented site file to start from."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from random import Random

from holdfast.apps.zapviewers.viewership import CHANNELS_TOLD_MAX, EVERY_MS
from holdfast.broker.site import PAXOS, PLAINTEXT_ACCEPTED, SCHEMES, TREE, site_from_toml
from holdfast.broker.site_text import DEFAULT_ADDRESS
from holdfast.cli.init_network import BROKERS, BROKERS_LISTED_MAX, network_text
from holdfast.cli.main import OK
from holdfast.errors import SiteError
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.desks.log_desk import RetentionSettings
from holdfast.protocols.paxos.membership import VOTERS_MAX
from holdfast.protocols.paxos.settings import Protocol
from holdfast.protocols.routing.settings import Reliability
from holdfast.topology.generators import Kind

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

REPLICAS = 3


def _group_text(protocol: str, replicas: int = REPLICAS) -> str:
    line = f'protocol = "{protocol}" '.ljust(19)
    listed = "\n".join(_replica_text(number) for number in range(1, replicas + 1))
    return f"""\
# A site: a broker network, described once. `holdfast up FILE` runs all of it here; `holdfast broker FILE --id r1` one
# replica of it, as you would on its own machine; `holdfast sim FILE` breaks it.
name = "my-site"

[scheme]
kind = "paxos"                      # replicas that behave as one broker: 3 survive 1 failure, 5 survive 2, 7 survive 3
{line}                 # "batch": all that waits is decided at once; "multi": each on its own; "fast": as
                                    # "batch", and clients propose to all replicas, where enough of them are there
pipeline = 10                       # decisions that are under way at once

{listed}
{_LIMITS_TEXT}"""


def _replica_text(number: int) -> str:
    return f"""\
[[broker]]
id = "r{number}"
address = "127.0.0.1:{7410 + number}"          # where clients connect; they are given all of them
# advertise = "r{number}.example.org:{7410 + number}" # … and told this instead; needed if it listens on 0.0.0.0
peer_address = "127.0.0.1:{7510 + number}"     # where the other replicas connect
# peer_advertise = "r{number}.example.org:{7510 + number}"
data = "var/r{number}"                     # what it promised and voted for must outlive it
"""


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
        "--scheme",
        choices=SCHEMES,
        help="tree: a network of brokers; paxos: a group of replicas (default: one broker)",
    )
    parser.add_argument(
        "--brokers",
        type=int,
        metavar="N",
        help=f"of a network (default {BROKERS}; 1 is one broker), or replicas of a group (default {REPLICAS})",
    )
    parser.add_argument(
        "--reliability",
        choices=[each.value for each in Reliability],
        help="of a network; what it does about failing brokers and links (default buffered; where links form cycles,"
        " bypass+buffered)",
    )
    parser.add_argument(
        "--topology",
        choices=[each.value for each in Kind],
        help="of a network: its links are made, by a seed (default: they are listed)",
    )
    parser.add_argument(
        "--protocol",
        choices=[each.value for each in Protocol],
        help="of a group; batch: all that waits is decided at once (default); multi: each on its own; fast: clients"
        " propose to all replicas",
    )
    parser.add_argument("--application", choices=APPLICATIONS, help="that the brokers host (default: none)")
    parser.set_defaults(run=_run)


def _text(arguments: argparse.Namespace) -> str:
    scheme = arguments.scheme or (PAXOS if arguments.protocol else TREE)
    given = [name for name in ("brokers", "reliability", "topology") if getattr(arguments, name) is not None]
    if arguments.protocol and scheme != PAXOS:
        raise SiteError("a protocol is of a group: say --scheme paxos", arguments.file)
    if scheme == PAXOS:
        return _group_text_of(arguments, [name for name in given if name != "brokers"])
    # An application is hosted by one broker, or by a group.
    alone = not given and (arguments.scheme is None or arguments.application is not None)
    count = arguments.brokers if "brokers" in given else 1 if alone else BROKERS
    if count == 1 and given in ([], ["brokers"]):
        return TREE_TEXT
    if arguments.topology is None and count > BROKERS_LISTED_MAX:
        problem = f"--brokers is {count}; more than {BROKERS_LISTED_MAX} are not listed: say --topology too"
        raise SiteError(problem, arguments.file)
    topology = None if arguments.topology is None else Kind(arguments.topology)
    usual = Reliability.BYPASS_BUFFERED if topology is Kind.RANDOM_GRAPH else Reliability.BUFFERED
    level = usual if arguments.reliability is None else Reliability(arguments.reliability)
    return network_text(count, level, topology) + _LIMITS_TEXT


def _group_text_of(arguments: argparse.Namespace, of_networks: list[str]) -> str:
    if of_networks:
        raise SiteError(f"--{of_networks[0]} is of a network: say --scheme tree", arguments.file)
    replicas = REPLICAS if arguments.brokers is None else arguments.brokers
    if replicas > VOTERS_MAX:
        raise SiteError(f"--brokers is {replicas}; a group has at most {VOTERS_MAX} replicas", arguments.file)
    return _group_text(arguments.protocol or Protocol.BATCH.value, replicas)


def _with_own_folder(text: str, site: str) -> str:
    """Data of each site in a folder of its own: two sites that are tried one after the other have a broker b1 each."""
    if not re.fullmatch(r"[\w.-]+", site):
        return text

    def moved(line: re.Match[str]) -> str:
        data = f'data = "var/{site}{line[1] or ""}"'
        return data.ljust(len(line[0])) if line[2] else data

    return re.sub(r'^data = "var(/\w+)?"( *)', moved, text, flags=re.MULTILINE)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.brokers is not None and arguments.brokers < 1:
        raise SiteError(f"--brokers is {arguments.brokers}, and has to be 1 or more", arguments.file)
    text = _text(arguments) + APPLICATIONS.get(arguments.application, "")
    if arguments.file != "-":
        text = _with_own_folder(text, Path(arguments.file).stem)
    try:
        site_from_toml(text, arguments.file, Random)
    except SiteError as error:
        # Its lines are of a file that is not written.
        raise SiteError(f"these options do not go together: {error.problem}", arguments.file) from error
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
