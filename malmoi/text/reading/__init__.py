"""Records out of any file or folder that a user may have."""
