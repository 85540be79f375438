"""The cycle around stand-ins (D0-B2): a broker's neighbours notice that it keeps no service level, one of the members
sees to it that a spare is there and that all agree, the stand-in does its work, and gives it back when it may."""
