"""The book's own extensions of Sphinx."""
