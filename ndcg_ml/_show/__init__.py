"""Drawings and pages of results. Matplotlib and Jinja2 are imported when needed."""
