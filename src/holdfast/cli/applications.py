"""Imports the application that a site names, and makes sure that it is one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.broker.site import ApplicationEntry
from holdfast.errors import SiteError
from holdfast.kernel.application import Hosted

METHODS = ("execute", "observe", "get_state", "set_state")


def application_of(entry: ApplicationEntry | None, where: str) -> Callable[[], Hosted] | None:
    """What makes a new one each time it is called; SiteError if there is none to be made.

    What is given can be sent to other processes.
    """
    if entry is None:
        return None
    make = partial(make_application, entry.factory, entry.settings, where)
    make()
    return make


def make_application(factory: str, settings: dict[str, Any], where: str) -> Hosted:
    """A new application, or SiteError."""
    made = _call(_find(factory, where), factory, settings, where)
    lacking = [name for name in METHODS if not callable(getattr(made, name, None))]
    topics = getattr(made, "topics", None)
    if lacking:
        raise SiteError(f"{factory!r} gives no application: it has no {', '.join(lacking)}", where)
    if not isinstance(topics, frozenset) or not all(isinstance(topic, str) for topic in topics):
        raise SiteError(f"{factory!r} gives no application: its topics are no frozenset of texts", where)
    return made  # type: ignore[no-any-return]


def _find(factory: str, where: str) -> Callable[..., Any]:
    module_name, _, name = factory.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a module may raise anything while it is imported
        problem = f"the module of factory {factory!r} can't be imported: {type(error).__name__}: {error}"
        raise SiteError(problem, where) from error
    found = getattr(module, name, None)
    if not callable(found):
        there = "is nothing that can be called" if found is not None else "is not there"
        raise SiteError(f"{name!r} of factory {factory!r} {there}", where)
    return found  # type: ignore[no-any-return]


def _call(found: Callable[..., Any], factory: str, settings: dict[str, Any], where: str) -> Any:
    try:
        return found(**settings)
    except Exception as error:  # whatever it objects to, the site file is what has to be changed
        problem = f"factory {factory!r} refuses its settings: {type(error).__name__}: {error}"
        raise SiteError(problem, where) from error
