"""Pages, their JSON, and the forms on them."""
