"""Pages about stored results, one kind a file."""
