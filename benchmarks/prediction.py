"""How long predictions take: the paper's network, a large one, and the exact probability of a way.

python -m benchmarks.prediction
python -m benchmarks.prediction --spark [--subscribers 1000000]     # a large one, in Spark and in plain Python
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from random import Random

from benchmarks import machine
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.graph import PartGraph
from holdfast.qos.interest import Publisher, Subscriber
from holdfast.qos.parts import part_of_availability
from holdfast.qos.prediction import Model
from holdfast.qos.two_terminal import two_terminal
from holdfast.topology.generators import Kind, links_of

DAY, LIFETIME, RUNS = 86_400, 3_600, 5


def drawn(brokers: int, kind: Kind, rng: Random) -> PartGraph:
    names = [f"b{n}" for n in range(1, brokers + 1)]
    links = links_of(kind, names, rng, 3.0) if kind is Kind.RANDOM_GRAPH else links_of(kind, names, rng)
    return PartGraph(
        {name: part_of_availability(rng.uniform(0.9, 0.999), 7 * DAY) for name in names},
        {ends: part_of_availability(0.99, 60_000) for ends in links},
    )


def workload(
    graph: PartGraph, publishers: int, subscribers: int, rng: Random
) -> tuple[list[Publisher], list[Subscriber]]:
    """Each publisher has a topic of its own; the k-th is wanted in proportion to 1/k (D1-E1)."""
    names = list(graph.brokers)
    topics = [f"t{n}" for n in range(publishers)]
    wanted = rng.choices(topics, [1 / rank for rank in range(1, publishers + 1)], k=subscribers)
    return [Publisher(rng.choice(names), topic) for topic in topics], [Subscriber(rng.choice(names), t) for t in wanted]


def best(work: Callable[[], object], runs: int = RUNS) -> float:
    """The shortest of some runs, in seconds of the processor."""
    times = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def in_spark(subscribers: int) -> None:
    """Seconds by the clock, since Spark's work is that of several processes."""
    from pyspark.sql import functions as F  # noqa: N812

    from holdfast.spark import make_session
    from holdfast.spark.predictions import PUBLISHERS, SUBSCRIBERS, predict

    rng = Random(1)
    spark = make_session("benchmarks.prediction", memory="2g")
    for kind, levels in (
        (Kind.RANDOM_TREE, [Reliability.PERIODIC, Reliability.BUFFERED]),
        (Kind.RANDOM_GRAPH, [Reliability.BYPASS]),
    ):
        graph = drawn(200, kind, rng)
        publishing, wanting = workload(graph, 1_000, subscribers, rng)
        words = f"200 brokers, {kind.value}, 1,000 publishers, {subscribers:,} subscribers, "
        words += " and ".join(level.value for level in levels)
        begun = time.perf_counter()
        expected = Model(graph, LIFETIME).predict(publishing, wanting, levels)
        print(f"{words}: {time.perf_counter() - begun:.1f} s in plain Python")
        known = {(one.subscriber.home, one.subscriber.topic): one.reliability for one in expected}
        publishers = spark.createDataFrame([(one.home, one.topic, one.rate) for one in publishing], PUBLISHERS)
        rows = ((one.home, one.topic, f"s{number}", 1) for number, one in enumerate(wanting))
        # In memory before the clock runs: tables are read from somewhere, and that is not what is asked here.
        clients = spark.createDataFrame(rows, SUBSCRIBERS).cache()
        clients.count()
        times = []
        for _ in range(3):
            begun = time.perf_counter()
            predict(Model(graph, LIFETIME), publishers, clients, levels).write.format("noop").mode("overwrite").save()
            times.append(time.perf_counter() - begun)
        print(f"  in Spark: {', '.join(f'{one:.1f}' for one in times)} s")
        told = predict(Model(graph, LIFETIME), publishers, clients, levels)
        distinct = told.groupBy("home", "topic", "level").agg(F.min("reliability"), F.max("reliability")).collect()
        differences = [
            abs(value - (known[row.home, row.topic][Reliability(row.level)] or 0.0))
            for row in distinct
            for value in row[3:]
        ]
        print(f"  largest difference of {len(differences) // 2:,} homes, topics and levels: {max(differences):.1e}")
        clients.unpersist()


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.prediction")
    parser.add_argument("--spark", action="store_true", help="a large network, in Spark")
    parser.add_argument("--subscribers", type=int, default=1_000_000, help="with --spark")
    arguments = parser.parse_args(words)
    print(", ".join(f"{name}: {value}" for name, value in machine.description().items()))
    if arguments.spark:
        in_spark(arguments.subscribers)
        return
    rng = Random(1)
    paper = drawn(10, Kind.RANDOM_GRAPH, rng)
    publishers, subscribers = workload(paper, 10, 500, rng)
    took = best(lambda: Model(paper, LIFETIME).predict(publishers, subscribers, list(Reliability)))
    print(f"10 brokers, 10 publishers, 500 subscribers, all levels: {took:.2f} s")
    large = drawn(200, Kind.RANDOM_TREE, rng)
    publishers, subscribers = workload(large, 1_000, 100_000, rng)
    stored = [Reliability.PERIODIC, Reliability.BUFFERED]
    took = best(lambda: Model(large, LIFETIME).predict(publishers, subscribers, stored))
    print(f"200 brokers in a tree, 1,000 publishers, 100,000 subscribers, periodic and buffered: {took:.2f} s")
    model, names = Model(large, LIFETIME), list(large.brokers)
    pairs = [(rng.choice(names), rng.choice(names)) for _ in range(200)]
    worst = max(abs(model.pair(stored[1], *pair) - model.block_form(stored[1], *pair)) for pair in pairs)
    print(f"  largest difference from the block form, {len(pairs)} pairs: {worst:.1e}")
    graph = drawn(200, Kind.RANDOM_GRAPH, rng)
    publishers, subscribers = workload(graph, 1_000, 100_000, rng)
    took = best(lambda: Model(graph, LIFETIME).predict(publishers, subscribers, [Reliability.BYPASS]), runs=1)
    print(f"200 brokers in a graph of mean degree 3, as many clients, bypass by disjoint paths: {took:.2f} s")
    times = []
    for _ in range(20):
        small = drawn(30, Kind.RANDOM_GRAPH, rng)
        first, last = rng.sample(list(small.brokers), 2)
        times.append(best(partial(two_terminal, small, first, last), runs=1))
    print(f"exact probability of a way, 30 brokers of mean degree 3: {max(times):.2f} s at most, of {len(times)} pairs")


if __name__ == "__main__":
    main()
