"""The commands of `python -m corpora`: each module has `Settings`, `main` and `ABOUT`."""
