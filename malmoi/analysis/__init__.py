"""What a table of texts says: shares with valid intervals, words, themes; a page and a workbook."""
