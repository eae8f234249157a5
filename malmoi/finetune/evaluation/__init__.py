"""How good predictions are, and what they say about the labels."""
