"""Parts of the page 살펴보기."""
