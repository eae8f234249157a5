"""When a round of learning is due: told apart so that pages need not import what learns."""

# Labels after which a round is due.
LABELS_A_ROUND = 20
