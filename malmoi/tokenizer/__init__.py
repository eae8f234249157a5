"""How is Korean cut into pieces? A corpus in, an `AutoTokenizer` directory out."""
