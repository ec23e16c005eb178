"""Command-line tools that are no part of the app."""
