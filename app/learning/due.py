"""When a round of learning is due: told apart so that pages need not import what learns."""

# Labels after which a round is due.
LABELS_A_ROUND = 20
# Of a label that a text may have or not: one with fewer texts, or without, has none in some folds.
FEWEST_OF_LABEL = 5
