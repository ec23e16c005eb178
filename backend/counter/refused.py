"""Why a model cannot be counted."""


class Refused(Exception):
    """The message completes "cannot be predicted: ..."."""
