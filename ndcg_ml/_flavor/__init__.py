"""The one-line text and the description of a flavor, and the declared differences of presets from their libraries.

``flavor.py`` defines ``Flavor`` and imports this package.
"""
