"""The commands of `malmoi`: each module has `ABOUT` and `main`, which takes its settings."""
