"""`python tokenizer/evaluate.py`: compare some. The code is in malmoi/tokenizer."""

import sys

from malmoi.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["tokenizer", "evaluate", *sys.argv[1:]]))
