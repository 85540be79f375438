"""Why claims of the paper do not hold here, where they do not: found by looking at what was measured."""

from __future__ import annotations

from typing import Final

BATCHES: Final = (
    "a neighbour tells up to 256 KiB of subscriptions, some 8,000, in one message, and the stand-in takes in one "
    "turn what has come: there is next to nothing between two subscriptions"
)

LOADED: Final = (
    "two cores were shared with other work (load 7 to 11), and repetitions differ by more than that; where CPU "
    "time is charged, in the simulator, it is otherwise"
)

AT_ONCE: Final = (
    "`basic` lets go of all that waits when the neighbour was asked, and the stand-in takes subscriptions in after that"
)

TOO_LATE: Final = (
    "nothing up to 1,000 subscriptions, 10% with 3,000 and 39% with 10,000: what waits is sent within 0.15 s, and "
    "that is when the first of so many come"
)

GENERAL: Final = (
    "0.87 to 1: with low thresholds biased low, one comes soon that wants nearly everything, and what leaves for "
    "it leaves in order; from then on nothing is overtaken"
)

BY_CHANCE: Final = (
    "up to 1,000 subscriptions it is later: basic sends in the order of publication, whoever is known; increm "
    "begins with what the first subscriptions want"
)

OTHER_LINKS: Final = (
    "events go one way and what is learned the other, and links work both ways at once; the brokers' own time, "
    "little beside 1.38 ms a message, is spent meanwhile"
)

ELSEWHERE: Final = (
    "what increm does besides is done at `n1`, before the stand-in has asked, and behind the turn in which it "
    "takes in all subscriptions"
)

MATCHING: Final = (
    "the delay is 20 to 35 ms here, and what brokers take to match the events that wait is a part of that which counts"
)

TURNS: Final = (
    "what takes its time is the stand-in's own turns, one after the other, and each neighbour brings more of "
    "them; links, which work side by side, take next to none"
)

DIVIDED: Final = (
    "one event is under way on each way at a time: what waits does so at the neighbour, is divided anew, and is "
    "overtaken by few"
)

ALIKE: Final = (
    "the stand-in has learned in 4 ms, and then increm is as any other; and of what comes, nothing can be below 0.5"
)

STAYS: Final = (
    "× 1.6 with twice what one way takes, × 1.3 with three times: what had been sent to the broker before stays "
    "there, and it hears of its stand-in behind that"
)

LEARNING: Final = (
    "of 1.7 s it is given nothing for the first 0.15 to 0.4, while it learns and the broker hears of it; and each "
    "event takes the subscribers' neighbour as long as before"
)

FEW_WANTED: Final = "13 to 21 ms: where subscriptions want little, the first that come want few events"
