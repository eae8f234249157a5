"""The linear part of a classifier: n-grams of characters and morphemes, by one matrix."""
