"""From results to text, HTML, drawings and pages.

In: a result, which says its own cells. Out: what a person reads. Matplotlib and Jinja2 are imported when needed.
"""
