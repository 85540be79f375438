"""What replicas cost: latency and throughput of groups of 1, 3, 5 and 7, in the form of the paper's two tables.

    .venv/bin/python -m benchmarks.replication [--rounds 5] [--quick] [--json | --markdown | --write]

`--json` prints every round; `--read FILE` makes the report from that instead of measuring. `--markdown` prints what
stands between the two markers in docs/performance.md, and `--write` puts it there.

How it is measured:

- One replica is the baseline without replication: one durable broker (kind "tree") that writes every publication to
  its log, with fdatasync, before it is acknowledged or delivered. A group does the same at a majority of its replicas.
- **Offered loads**, as in the paper: 1, 3, 6, 12 and 24 publishers offer 10, 30, 60, 70 and 90 publications a second
  together. A publication is an event of the topic `zap`, whose payload has up to 200 lines of less than 60 bytes, of
  180,000 set-top boxes a publisher; they are synthetic, drawn with a fixed seed, and no log of real viewers. Three
  subscribers want all of them. Latency is the time of reception at a subscriber less the time of publishing, which the
  event carries (D4-D2); throughput is the publications that arrived, divided by the time until the last one did
  (D4-D3).
- **Saturated**: `publish_many` of events of 60 bytes by 1 to 24 publishers, nobody subscribed; events acknowledged in a
  second, each of them durable at a majority; and the processor time that each replica took for an event.
- Replicas are processes of their own; so are the publishers together, and the subscribers together. All of them share
  the machine's cores, its disk and its loopback: seven replicas on two cores take turns.
- A round goes through all configurations, each round begun by another group, and only the group that is measured runs.
  The best of the rounds counts for latency and for saturated groups, since what else the machine does only adds to
  them; the median counts for the throughput of offered loads, where the best would hide what is missing.
"""
