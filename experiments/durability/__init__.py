"""Does a broker keep what it acknowledged? Kills and power cuts, against real processes and real files.

python -m experiments.durability kills --count 200
python -m experiments.durability power-cuts --count 20      # needs root: mounts an image
"""
