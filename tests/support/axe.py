"""axe-core, which finds what keeps people with disabilities from using a page. Fetched from npm once, checked, kept.

`python -m tests.support.axe` fetches it before the tests need it.
"""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
"""Of `package/axe.min.js` in npm's axe-core of that version."""


class NotFetchedError(Exception):
    """axe-core is not here and could not be fetched: one sentence."""


def script() -> str:
    """The JavaScript of axe-core, from the cache or from npm."""
    kept = Path(tempfile.gettempdir()) / f"tokendyno-axe-{VERSION}-{os.getuid()}.js"
    if kept.is_file() and _right(kept.read_bytes()):
        return kept.read_text(encoding="utf-8")
    if shutil.which("npm") is None:
        raise NotFetchedError("axe-core comes from npm, which is not installed: apt-get install npm")
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", f"axe-core@{VERSION}", "--silent"], cwd=folder, capture_output=True, text=True, timeout=120
        )
        if packed.returncode:
            raise NotFetchedError(f"npm could not fetch axe-core {VERSION}: {packed.stderr.strip()[:300]}")
        with tarfile.open(Path(folder) / f"axe-core-{VERSION}.tgz") as archive:
            member = archive.extractfile("package/axe.min.js")
            found = member.read() if member else b""
        if not _right(found):
            raise NotFetchedError(f"axe-core {VERSION} from npm is not the file whose hash is known")
        draft = kept.with_suffix(f".{os.getpid()}")
        draft.write_bytes(found)
        draft.replace(kept)
    return found.decode("utf-8")


def _right(data: bytes) -> bool:
    return hashlib.sha256(data).hexdigest() == SHA256


if __name__ == "__main__":
    print(f"axe-core {VERSION}: {len(script()):,} characters")
