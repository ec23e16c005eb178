"""Mutation testing: small seeded changes to the product, and which of them its tests notice."""
