"""The page: the only rooms with gradio and plotly. Nothing in here imports torch or transformers."""
