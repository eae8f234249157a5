"""`python finetune/kfold.py --labels A,B`: a measured classifier. Code: malmoi/finetune."""

import sys

from malmoi.finetune.kfold import command

if __name__ == "__main__":
    sys.exit(command())
