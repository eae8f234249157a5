"""Generator and discriminator: how they begin, and what they cost."""
