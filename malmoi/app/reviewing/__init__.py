"""Parts of the page 검수."""
