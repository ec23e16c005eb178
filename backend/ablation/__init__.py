"""What each of several changes is worth: alone, by being left out, and one after the other."""
