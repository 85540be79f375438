"""The client library: thin drivers over the client's node."""

from holdfast.client import blocking
from holdfast.client.advertisement import Advertisement
from holdfast.client.bus import Bus, State, connect
from holdfast.client.subscription import Subscription

__all__ = ["Advertisement", "Bus", "State", "Subscription", "blocking", "connect"]
