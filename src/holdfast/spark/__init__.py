"""Holdfast in Spark: the data source `holdfast`, frames of what is wanted, and what makes sessions for them.

Imported by nothing but `apps` and `cli`; needs the extra `holdfast[spark]`. Spark is imported with the first name that
is used: the errors do without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.spark.pushdown import pushed, read, spared, subscribe
    from holdfast.spark.session import make_session

__all__ = ["make_session", "pushed", "read", "spared", "subscribe"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'session' if name == 'make_session' else 'pushdown'}"), name)
