"""What the command line's exit codes mean. A module of its own, which is imported in no time."""

OK, BAD_INPUT, FAILED, STOPPED = 0, 2, 3, 130
