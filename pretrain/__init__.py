"""How does the encoder learn Korean? A corpus in, ELECTRA checkpoints out."""

from corpora.threads import share_cores

share_cores()
