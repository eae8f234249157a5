"""Korean text: read from any file, cleaned, freed of copies, kept as a corpus."""
