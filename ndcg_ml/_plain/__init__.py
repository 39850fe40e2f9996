"""What a flavor and all messages need, in plain Python: checks of arguments, text, tables. No NumPy."""
