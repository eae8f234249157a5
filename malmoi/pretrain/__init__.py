"""How does the encoder learn Korean? A corpus in, ELECTRA checkpoints out."""
