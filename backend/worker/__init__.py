"""The worker: a process of its own, the only place where torch runs."""
