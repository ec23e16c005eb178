"""The runs that are kept, as a visitor finds, names, compares and deletes them."""
