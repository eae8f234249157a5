"""How does the encoder learn Korean? A corpus in, ELECTRA checkpoints out."""

from malmoi.threads import share_cores

share_cores()
