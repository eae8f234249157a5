"""`python tokenizer/train.py`: train one. The code is in malmoi/tokenizer."""

import sys

from malmoi.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["tokenizer", "train", *sys.argv[1:]]))
