"""The client library: thin drivers over the client's node."""

from holdfast.client import blocking
from holdfast.client.advertisement import Advertisement
from holdfast.client.bus import Bus, connect
from holdfast.client.connection import State
from holdfast.client.named import NamedSubscription
from holdfast.client.subscription import Subscription

__all__ = ["Advertisement", "Bus", "NamedSubscription", "State", "Subscription", "blocking", "connect"]
