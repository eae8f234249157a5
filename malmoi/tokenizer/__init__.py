"""How is Korean cut into pieces? A corpus in, an `AutoTokenizer` directory out."""

from malmoi.threads import share_cores

share_cores()
