"""The reliability model held against the brokers: predicted and measured, one point for each subscriber (D1-E5, E6).

    python -m experiments.qos                    # ten runs of each kind; figures and tables into docs/qos-results/
    python -m experiments.qos --runs 100         # the formulas with nominal parts get closer with every run
    python -m experiments.qos --topologies 20 --spark --parquet DIR    # the paper's 20 a class, as tasks of Spark
    python -m experiments.qos --runs 1 --days 2 --sweep --out FOLDER

What is measured are the brokers of `experiments.d1` in the simulator, never draws from the model. It is compared with
three things:

- an **ideal replay** of each run: what could have been delivered, given when its brokers and links were on (`Oracle`).
  The difference is what the brokers lose by noticing late, by telling again, and by mistakes;
- the **formulas with the runs' own parts**: availability and mean outage as they were in all runs of a topology. The
  difference is that of the formulas, and of outages that are not quite exponential in so many days;
- the **formulas with nominal parts**, as the paper shows it. 14 days hold two outages of a broker or so, so that most
  of the difference is chance, which the replays tell.

The same with processes in the place of the simulator, which are killed for seconds: `python -m
experiments.qos.processes`.

The detour of `bypass+buffered` is predicted, and replayed, as tried once, when an event is published.
"""
