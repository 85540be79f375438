"""The schemes that there are, one line each. A scheme is imported when it is first asked for, and its clients without
what its brokers are made of."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import UnknownScheme

if TYPE_CHECKING:
    from holdfast.broker.scheme import Scheme
    from holdfast.broker.scheme_client import SchemeClient


class Schemes:
    """By kind, in the order in which they were added; the first is that of a site that names none.

    A scheme's package has `SCHEME` in its module `scheme`, `SWARM` in `swarm` and `CLIENT` in `client`.
    """

    def __init__(self, packages: dict[str, str]) -> None:
        self._packages = dict(packages)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self._packages)

    @property
    def packages(self) -> dict[str, str]:
        """Kind → package, as other processes have to register them."""
        return dict(self._packages)

    def add(self, kind: str, package: str) -> None:
        """Registers a scheme; to do so again is no mistake."""
        if self._packages.setdefault(kind, package) != package:
            raise ValueError(f"{kind!r} is the scheme of {self._packages[kind]}, and not of {package}")

    def __getitem__(self, kind: str) -> Scheme:
        scheme: Scheme = self.module(kind, "scheme").SCHEME
        return scheme

    @property
    def templates(self) -> dict[str, str]:
        """Names of kinds of sites that schemes have besides the usual one → the schemes' kinds."""
        return {name: kind for kind in self.kinds for name in self[kind].templates}

    def client(self, kind: str) -> SchemeClient:
        """What clients of the scheme are; UnknownScheme if nobody has registered it."""
        client: SchemeClient = self.module(kind, "client").CLIENT
        return client

    def __contains__(self, kind: str) -> bool:
        return kind in self._packages

    def module(self, kind: str, name: str) -> Any:
        """A module of a scheme's package; UnknownScheme if nobody has registered the scheme."""
        if kind not in self._packages:
            raise UnknownScheme(kind, ", ".join(self.kinds))
        return import_module(f"{self._packages[kind]}.{name}")


SCHEMES: Final = Schemes(
    {
        "tree": "holdfast.schemes.tree",
        "paxos": "holdfast.schemes.paxos",
    }
)
