"""These tests check the repository: a source archive has another layout, and leaves out some of what they read."""

from tokendyno.backend.paths import ROOT

collect_ignore_glob = [] if (ROOT / "docs").is_dir() else ["test_*.py"]
