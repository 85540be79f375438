"""`holdfast init`: writes a commented site file to start from."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from random import Random

from holdfast.apps.zapviewers.viewership import CHANNELS_TOLD_MAX, EVERY_MS
from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import InitOption, InitWish
from holdfast.broker.site import PLAINTEXT_ACCEPTED, site_from_toml
from holdfast.cli.main import OK
from holdfast.errors import SiteError
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.desks.log_desk import RetentionSettings

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
# remote_operators = "{PLAINTEXT_ACCEPTED}"     # serve `holdfast status`, `group` and `network` of other machines too
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
    abouts = {kind: SCHEMES[kind].about for kind in SCHEMES.kinds}
    abouts |= {name: SCHEMES[kind].templates[name].about for name, kind in SCHEMES.templates.items()}
    about = "; ".join(f"{name}: {text}" for name, text in abouts.items())
    parser.add_argument("--scheme", choices=abouts, help=f"{about} (default: one broker)")
    parser.add_argument(
        "--brokers", type=int, metavar="N", help="how many (default: as many as the scheme has as a rule)"
    )
    for name, option in _options().items():
        parser.add_argument(f"--{name}", choices=option.values, help=option.about)
    parser.add_argument("--application", choices=APPLICATIONS, help="that the brokers host (default: none)")
    parser.set_defaults(run=_run)


def _options() -> dict[str, InitOption]:
    """Those of all schemes, by name."""
    return {name: option for kind in SCHEMES.kinds for name, option in SCHEMES[kind].init_options.items()}


def _text(arguments: argparse.Namespace) -> str:
    given = {name: getattr(arguments, name) for name in _options() if getattr(arguments, name) is not None}
    # Who gives an option of one scheme, and names none, means that one.
    meant = (kind for kind in SCHEMES.kinds for name in given if name in SCHEMES[kind].init_options)
    wanted = arguments.scheme or next(meant, SCHEMES.kinds[0])
    template = wanted if wanted in SCHEMES.templates else ""
    scheme = SCHEMES[SCHEMES.templates.get(wanted, wanted)]
    for name in given:
        if name not in scheme.init_options:
            having = next(kind for kind in SCHEMES.kinds if name in SCHEMES[kind].init_options)
            raise SiteError(f"--{name} is of another scheme: say --scheme {having}", arguments.file)
    hosts = arguments.application is not None
    wish = InitWish(arguments.file, arguments.scheme is not None, arguments.brokers, given, hosts, template)
    return scheme.init_text(wish) + _LIMITS_TEXT


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
