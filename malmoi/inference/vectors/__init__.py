"""Sentence vectors: how like two texts are in what they mean."""
