"""A saved evaluation, and whether a new one is worse.

In: an ``Evaluation``, or the file that ``Evaluation.save`` wrote. Out: the file, or the evaluation that it holds, and a
``Gate``: pass, worse or undecided. ``saved`` and ``gate`` do not know each other.
"""
