"""Parts of the page 현황."""
