"""How do people use and correct it? A classifier in, labels out."""
