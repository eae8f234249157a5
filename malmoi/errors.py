"""What every room raises for input it cannot use."""


class InputError(ValueError):
    """Something the user gave cannot be used.

    The message is one line: what was expected, what was found, where (file and line), what to
    do. The command line prints it without a traceback and exits with code 2; the app shows it.
    """


class UnfinishedError(InputError):
    """Long work ended before its output could appear; what it finished stays, to go on from."""
