"""What goes wrong with Spark and the connector. Needs no Spark itself.

SparkError
├── NoJava              there is no Java that Spark could run on
├── OptionError         an option of the connector that is missing or can't be used   (a ValueError)
├── PackError           an archive for executors that can't be made
└── PipelineError       a pipeline that can't be run as asked                         (a ValueError)
"""

from __future__ import annotations

from holdfast.errors import Fields, HoldfastError


class SparkError(HoldfastError):
    """Something about Spark."""


class NoJava(SparkError):
    """There is no Java that Spark could run on."""


class OptionError(Fields, SparkError, ValueError):
    """An option of the connector, or of a function that sets them, is missing or can't be used."""

    problem: str
    option: str = ""


class PackError(SparkError):
    """An archive for executors can't be made from what is installed here."""


class PipelineError(SparkError, ValueError):
    """A pipeline can't be run as asked: its tables are missing, or of something else."""
