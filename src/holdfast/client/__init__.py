"""The client library: thin drivers over the client's node."""

from holdfast.client import blocking
from holdfast.client.bus import Bus, State, connect
from holdfast.client.subscription import Subscription

__all__ = ["Bus", "State", "Subscription", "blocking", "connect"]
