"""What tests and demos need to make a real network misbehave."""

from holdfast.testing.fault_proxy import FaultProxy

__all__ = ["FaultProxy"]
