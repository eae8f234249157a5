"""What text do we have, and is it clean? Records in, clean text out."""
