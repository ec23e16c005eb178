"""Scripts that make the embedded model `presets/models/pocket`; README.md says how to run them again."""
