"""The commands of `malmoi`: each module has `Settings`, `main` and `ABOUT`."""
