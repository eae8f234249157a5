"""Corpora on disk: cleaned in units, counted, sampled."""
