"""Does a Spark query keep its promise, each event once, when what it runs on is killed? Real processes throughout.

python -m experiments.exactly_once --count 5        # five kills of each kind
"""
