"""Which texts came before: exactly, or nearly."""
