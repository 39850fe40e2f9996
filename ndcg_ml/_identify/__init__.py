"""Which flavor gave a reported number.

In: the data and the number. Out: ``Identification``, with the flavors that reproduce it, presets first.
"""
