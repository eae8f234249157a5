"""How do people use and correct it? A classifier in, labels out."""

from malmoi.threads import share_cores

share_cores()
