"""What people decided about texts: names of labels, and the store that keeps them."""
