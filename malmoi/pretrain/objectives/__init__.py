"""What the networks learn: corrupted tokens and losses."""
