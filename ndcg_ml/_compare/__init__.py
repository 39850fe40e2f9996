"""Compare evaluations of the same queries: systems, slices of queries, and the effect of missing labels."""
