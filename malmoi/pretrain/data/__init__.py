"""Texts as token ids, in batches, with masks."""
