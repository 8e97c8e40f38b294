"""Baselines: what the command line released, charged, certified and printed for many settings, kept as files.

`python -m tests.baselines write` makes `expected/NAME.json` for each case of `cases.py`, `python -m tests.baselines
compare` runs the cases again and prints the first difference of each. A case is command lines alone, so that it
outlives a change of what is inside the program; what has to be put in the program's place is in `seams.py`.
"""
