"""What the site's builder has to know beyond Sphinx."""
