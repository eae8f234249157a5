"""Labelled texts, checked, and split into folds."""
