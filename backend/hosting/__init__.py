"""Who may visit and what a visitor may do: identities, users, modes and their limits."""
