"""Comparisons of evaluations: their queries matched, by system and by slice, with what missing labels leave open."""
