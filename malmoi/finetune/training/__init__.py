"""Fine-tuning: an encoder with a head, its losses, and every fold."""
