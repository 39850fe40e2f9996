"""A flavor in words, and what the presets leave out.

In: the fields of a flavor, or its text. Out: the line that can be read back, the description, and the differences from
its library that a preset declares. ``Flavor`` itself is made above, in ``flavor.py``.
"""
