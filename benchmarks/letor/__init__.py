"""What trains better, on real ranking data: ``python -m benchmarks.letor``.

``folders`` reads data in LETOR's form as folds. ``networks`` and ``trees`` train and score, one contender and fold at a
time; ``stopping`` asks what early stopping by each metric costs. ``cells`` runs what is not done yet, one process and
thread per cell, and keeps every answer in a file, so that a run may be cut off. ``verdicts`` compares by query and
seed.
"""
