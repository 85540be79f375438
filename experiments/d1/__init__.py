"""The second paper's set-up, in the simulator: how reliably and how timely a failing network delivers (D1-E1 to E6).

    python -m experiments.d1 --level buffered --brokers low --seed 1          # a random tree (D1-E5)
    python -m experiments.d1 --level bypass --brokers high --seed 1 --graph   # a random graph (D1-E6)
    python -m experiments.d1 --all --brokers low --seeds 10 --json FILE       # all levels that apply, ten seeds each

The nodes are those that serve, and every event makes its way from one to the next: nothing is drawn from a model.
What is drawn, by the seed, is the world (`world`): ten brokers, and a tree of them or a graph of mean degree 3; ten
publishers with a topic each; 500 subscribers, each with one topic, of which the k-th is wanted in proportion to 1/k
(D1-E1 does not give the exponent of its power law; it is 1 here); everyone's home broker; each broker's availability,
0.90 to 0.95 (low-end) or 0.99 to 0.999 (high-end, D1-E3); and when brokers and links fail (`outages`). Links have
availability 0.99 and a period of 60,000 s; brokers a period of 7 days unless it is said otherwise, since the paper's is
lost (D1-E4); local links never fail. A broker that fails loses its process, with all that is not on a disk, and has a
disk at the levels that buffer only. Clients are naive: what is published while the home broker is down is lost
(D1-B4.4), and nobody subscribes again unless the broker asks for it, as it does at every level but `none`.
Subscriptions flood, as in the paper; levels without detours get the spanning tree of a graph.

Everyone subscribes while all is well. Then the measured time begins, 14 days, with every broker and link on or off as
it is at any time of a long run (D1-B9), which the first events meet.

The times of protocols are stretched, or 14 days of quiet would be made of pings. All stay short against the repair
times, which are what matters (D1-C7):

- brokers try again to reach a neighbour every 30 s; a link that is down takes 600 s to be repaired. Heartbeats go at
  half the publishing interval, every 5 minutes at least: what is sent on a link that is cut finds that out too, within
  20 s;
- brokers tell their neighbours everything again every 10 minutes (D1-B3: T_r), and at once to one that was restarted,
  and forget it after 35 (D1-B3: timeout); acknowledgements are waited for a minute before events are sent again;
- a client tries again to reach its home broker after 5 s, or 2% of the shortest mean repair time of a broker if that is
  longer: 10 minutes for low-end and 12 s for high-end ones. Pings go every 6 hours, as do reports of what was received:
  local links never fail, and a process that is gone is noticed without them.

Events are published every 10 minutes, not every minute as in D1-E2, unless `--full` is said: the estimate of one
subscriber gets coarser, its expectation stays. For the sake of speed all publishers publish at the same moments, the
subscribers of a home broker share a session, and those of one topic a subscription there. A subscriber knows one
publisher and one broker, so that none of it can matter to it; `--apart` and `--own-sessions` undo them, and a test
compares.

What could have been delivered in a world can be read off its outages (`oracle`, `replay`), and what is measured is held
against that: what repeated subscriptions deliver is what was published while the path was up (D1-C2), what detours
deliver is what was published while there was a way (D1-C4).
"""
