"""A model for others: a folder that needs nothing of ours, a card, a web page, the Hub."""
