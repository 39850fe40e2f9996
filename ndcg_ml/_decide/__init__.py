"""From values of queries to decisions: means, intervals, tests, comparisons, slices, baselines and the gate."""
