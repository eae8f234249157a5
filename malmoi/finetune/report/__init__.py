"""What a fine-tuning run writes for people to read."""
