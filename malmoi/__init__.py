"""The library that every stage of Malmoi stands on."""

from malmoi.threads import share_cores

share_cores()
