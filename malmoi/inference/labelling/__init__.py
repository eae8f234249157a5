"""What is learnt from the labels of a project while people give them, and asked of other texts."""
