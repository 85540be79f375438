"""The fourth paper's experiments on ZapViewers: its figures 6 and 7 and its tables 1 and 2, beside its own numbers.

    python -m experiments.p2s                   # all groups, some twelve minutes; writes docs/p2s-results
    python -m experiments.p2s --quick --to DIR  # 1 and 3 replicas, 1 and 3 publishers, a second each
    python -m experiments.p2s --read FILE       # what an earlier run wrote to results.json, drawn again

As in the paper (D4-E1): one broker that is not replicated, and groups of 3, 5 and 7, each a process of its own; Paxos
with one publication a slot and ten slots at once; 1 to 24 publishers that stand for 180,000 set-top boxes each; few
subscribers. All brokers run Viewership. A publication has up to 200 lines, from the synthetic log: the paper's is of
real viewers, and private. How loads are offered and latency is taken is said in `benchmarks/replication/__init__.py`,
whose code this is.

When a group is done, its viewership is asked for. A box belongs to one publisher, whose publications stay in order: so
every group, however large, must have counted the same viewers, or the run fails.
"""
