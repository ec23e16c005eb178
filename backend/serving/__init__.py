"""`tokendyno serve`: one arm behind OpenAI's interface, for demos and experiments."""
