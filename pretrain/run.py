"""`python pretrain/run.py --corpus PATH`: pre-train an encoder. The code is in malmoi/pretrain."""

import sys

from malmoi.pretrain.run import command

if __name__ == "__main__":
    sys.exit(command())
