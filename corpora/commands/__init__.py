"""The commands of `python -m corpora`: one module each, with `Settings`, `main` and `ABOUT`."""
