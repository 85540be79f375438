"""The reliability model held against the brokers: predicted and measured, one point for each subscriber (D1-E5, E6).

    python -m experiments.qos                    # three runs of each kind; figures and tables into docs/qos-results/
    python -m experiments.qos --runs 10          # ten, as the paper has them
    python -m experiments.qos --runs 1 --days 2 --out FOLDER

What is measured are the brokers of `experiments.d1` in the simulator, never draws from the model. Each run is compared
with three things:

- an **ideal replay** of the run: what could have been delivered, given when its brokers and links were on (`Oracle`).
  The difference is what the brokers lose by noticing late, by telling again, and by mistakes;
- the **formulas with the run's own parts**: availability and mean outage as they were in the run. The difference is
  that of the formulas, and of outages that are not exponential in 14 days;
- the **formulas with nominal parts**, as the paper shows it. 14 days hold two outages of a broker or so, so that most
  of the difference is chance.

The detour of `bypass+buffered` is predicted, and replayed, as tried once, when an event is published.
"""
