"""Save evaluations, and check whether a new one is worse than a saved one.

In: an ``Evaluation``, or the file that ``Evaluation.save`` wrote. Out: that file, the evaluation read from it, or a
``Gate`` (pass, worse or undecided). ``saved`` and ``gate`` do not import each other.
"""
