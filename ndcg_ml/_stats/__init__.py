"""Statistics of numbers: intervals of means and differences, tests, and families of them.

Inputs are values and weights of queries; nothing here ranks a document or reads an evaluation.
"""
