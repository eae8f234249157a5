"""The linear part of a classifier: n-grams of characters and what Kiwi knows, by one matrix."""
