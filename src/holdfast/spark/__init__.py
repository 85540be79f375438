"""Holdfast in Spark: the data source `holdfast`, frames of what is wanted, and what makes sessions for them.

Imported by nothing but `apps` and `cli`; needs the extra `holdfast[spark]`.
"""

from holdfast.spark.pushdown import pushed, read, spared, subscribe
from holdfast.spark.session import make_session

__all__ = ["make_session", "pushed", "read", "spared", "subscribe"]
