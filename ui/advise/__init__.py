"""The page "What should I use?"."""
