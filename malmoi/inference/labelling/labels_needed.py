"""When a round of learning is due: told apart so that pages need not import what learns."""

# Labels after which a round is due (assumption: a minute of work, in which a round, which takes
# seconds, is hardly noticed).
LABELS_A_ROUND = 20
# Fewer texts of the random sample say too little: a standard error of 9 points at an F1 of 0.5.
FEWEST_OF_SAMPLE = 30
# Of a label that a text may have or not: one with fewer texts, or without, has none in some folds.
FEWEST_OF_LABEL = 5
