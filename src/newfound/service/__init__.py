"""`newfound serve`: images in over HTTP, categories on a page as they are discovered, and people who mend them."""
