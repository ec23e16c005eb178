"""Counts a model by building it with transformers on the meta device, in a short-lived process of its own.

`tokendyno.backend.models.counting` starts it and reads its answer; nothing imports it. Only the worker and this folder
import torch at the top of their files.
"""
