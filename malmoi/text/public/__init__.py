"""Public Korean corpora: where each comes from, what its labels mean, how it is read."""
