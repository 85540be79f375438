"""Holdfast in Spark: the data source `holdfast`, and what makes sessions for it.

Imported by nothing but `apps` and `cli`; needs the extra `holdfast[spark]`.
"""

from holdfast.spark.session import make_session

__all__ = ["make_session"]
