"""Everything of tokendyno that works without a browser."""
