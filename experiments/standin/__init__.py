"""Stand-ins, as the first paper promises and measures them: Table 1 (D0-C6 to C14), and its figures (D0-E1 to E12).

    python -m experiments.standin --table1                       # fifty random schedules a line
    python -m experiments.standin --table1 --seeds 500 --jobs 2
    python -m experiments.standin --figures --jobs 2             # docs/standin-results

What is drawn for the table, by the seed, is a world (`world`): a tree of 4 to 30 brokers, of which one fails, or is
slow; publishers and subscribers, several with the same filter, since that is what completeness compares; and a
schedule: latencies, slow brokers, when the one fails and is replaced, what is published before, meanwhile and after,
and genuine news during the replacement. A world is played with each protocol. A property that the paper promises has
to hold in every one of them; one that it does not promise is violated by a schedule that is made for it (`schedules`,
D0-C14.1).
"""
