"""What the public functions return: values, tables of queries, comparisons and slices."""
