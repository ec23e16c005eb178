"""Files read strictly, and written whole or not at all."""
