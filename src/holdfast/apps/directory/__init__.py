"""The directory: which map each network has now, kept by a group; a replicated application (D0-A10)."""

from holdfast.apps.directory.application import Directory

__all__ = ["Directory"]
