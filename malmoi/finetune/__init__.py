"""How good is it at my task? An encoder and labelled texts in, a measured classifier out."""
