"""What a run of pre-training is asked for."""
