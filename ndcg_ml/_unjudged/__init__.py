"""What missing labels leave open: the range of a value or a difference over all ways to grade them, and which to get.

In go documents with labels and scores (``Queries``, as an evaluation keeps them), a flavor and a cut-off; out come the
least and the largest value (``range``), by exact optimisation over completions of the labels (``completions``), and the
documents to label next (``judge_next``). ``documents`` says what each document weighs in a ranking. Results of
evaluations and comparisons ask this room; it knows neither.
"""
