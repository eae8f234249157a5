"""Clean text out of raw text."""
