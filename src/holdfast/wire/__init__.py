"""The wire: how messages become bytes on a connection, who may say what, and how much. No sockets here."""
