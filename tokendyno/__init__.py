"""The one name under which tokendyno is imported.

Installed, the files lie in this folder. In a checkout they lie at its top and this folder holds links to them, for
setuptools, mypy and editors; Python itself goes past the links, so that paths in tracebacks are those that git knows,
and a copy whose links were lost (an upload to the Hub drops them) runs all the same.
"""

import os

_here = os.path.dirname(os.path.realpath(__file__))
if os.path.islink(f"{_here}/backend") or not os.path.isdir(f"{_here}/backend"):
    __path__.insert(0, os.path.dirname(_here))
