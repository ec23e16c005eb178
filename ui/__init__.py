"""The page: the only package that imports gradio and plotly. Nothing here imports torch or transformers."""
