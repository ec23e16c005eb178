"""What should I use? Arms are proposed, pruned, measured and compared until the best one for a wish is known."""
