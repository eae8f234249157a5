"""From text to label: the only path on which anything is predicted."""
