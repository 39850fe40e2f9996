"""The notebooks, and the command that runs them and records what they show: ``python -m notebooks``."""
