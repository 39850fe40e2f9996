"""Long runs that try to break the library; reliability/results/runs.md lists them."""
