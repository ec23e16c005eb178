"""Arms as they are written on the command line: choices, or a preset's name."""

import argparse
from collections.abc import Mapping

from backend.arms.bundles import written_arm
from backend.config import ArmRequest, Workload
from backend.models import resolve


def written_arms(options: argparse.Namespace, texts: Mapping[str, str], work: Workload) -> list[ArmRequest]:
    """An arm for each text, by name; of a bundle what the model can do on this machine. InputError where one cannot be
    read."""
    model, folder = options.model, options.models_dir
    return [written_arm(name, text, model, work, lambda: resolve(model, folder)) for name, text in texts.items()]
