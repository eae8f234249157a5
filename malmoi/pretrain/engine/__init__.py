"""Steps: the loop, the optimizer, checkpoints, several processes, and what is shown."""
