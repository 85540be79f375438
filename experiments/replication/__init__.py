"""Groups of replicas in processes of their own: what they survive, and how soon they go on.

python -m experiments.replication kills --count 500       # kill -9 for the leader or for followers, under load
python -m experiments.replication pauses --count 50       # the leader stands still, and wakes up deposed
python -m experiments.replication cuts --count 50         # the leader is cut off, in four ways
python -m experiments.replication crash                   # throughput and latency over time: CSV and SVG
python -m experiments.replication crash --read docs/replication-results/crash.csv     # draws it, measures nothing
"""
