"""Memory and the roofline bound, predicted from a model's config alone, before anything is loaded."""
