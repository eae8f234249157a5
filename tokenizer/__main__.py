"""`python -m tokenizer COMMAND`, as `malmoi tokenizer COMMAND`. The code is in malmoi/tokenizer."""

import sys

from malmoi.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["tokenizer", *sys.argv[1:]]))
