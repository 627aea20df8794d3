"""The one template: this server's own Python with its packages, and the host's shell and tools."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pathlib
import sys
from collections.abc import Mapping

NAMES = frozenset({"base", "code-interpreter-v1"})
CPU_COUNT = 2
USER = "user"
HOME = "/home/user"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Parts of /etc that programs need and that hold nothing private; patterns of names.
ETC = (
    "R",
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "fonts",
    "java-*-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "pki",
    "protocols",
    "services",
    "ssl",
    "timezone",
)


_WARMING = """
for name in ("ipykernel.kernelapp", "jupyter_client.manager", "matplotlib_inline.backend_inline",
             "pandas", "matplotlib.pyplot", "pytest"):
    try:
        __import__(name)
    except ImportError:
        pass
"""


@dataclasses.dataclass(frozen=True)
class Template:
    """Where Python and its packages lie on the host; sandboxes see the same paths, read-only."""

    python: pathlib.Path
    roots: tuple[pathlib.Path, ...]
    search_path: str
    font_cache: pathlib.Path
    """A folder with matplotlib's list of fonts, once `warm` has run."""
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What it adds to the environment of every program."""

    @classmethod
    def of_this_python(cls, font_cache: pathlib.Path, variables: Mapping[str, str]) -> Template:
        """Describe the Python that runs this server; `font_cache` need not exist yet.

        Its paths stay what they are on the host: scripts and `pyvenv.cfg` name them.
        """
        prefix = pathlib.Path(sys.prefix)
        wanted = {prefix, pathlib.Path(sys.base_prefix), pathlib.Path(sys.exec_prefix)}
        # A virtual environment's python is a chain of links; each hop must exist inside as well.
        hop = pathlib.Path(sys.executable)
        while hop.is_symlink():
            hop = hop.parent / hop.readlink()
            wanted.add(pathlib.Path(os.path.normpath(hop)).parent.parent)
        wanted |= {path.resolve() for path in wanted}
        roots = tuple(sorted(path for path in wanted if not _covered(path)))
        return cls(pathlib.Path(sys.executable), roots, f"{prefix}/bin:{_SYSTEM_PATH}", font_cache, variables)

    async def warm(self) -> None:
        """Import once, on the host, what sandboxes use most; does nothing the second time.

        Sandboxes cannot write next to the packages, so each would compile them anew, and each would search
        the machine for fonts, which takes seconds.
        """
        if self.font_cache.exists():
            return
        self.font_cache.mkdir()
        process = await asyncio.create_subprocess_exec(
            str(self.python),
            "-I",
            "-c",
            _WARMING,
            env={
                "PATH": self.search_path,
                "MPLCONFIGDIR": str(self.font_cache),
                "HOME": str(self.font_cache),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await process.wait()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise

    def environment(self, home: str) -> dict[str, str]:
        """Return the variables every program of a sandbox starts with; none is the host's."""
        return {
            "HOME": home,
            "USER": USER,
            "LOGNAME": USER,
            "SHELL": "/bin/bash",
            "PATH": self.search_path,
            "LANG": "C.UTF-8",
            "E2B_SANDBOX": "true",
            "PYTHONUNBUFFERED": "1",
            **self.variables,
        }

    def login_profile(self) -> str:
        """Return the /etc/profile of a sandbox: Debian's own would reset PATH and lose this Python."""
        return f"PATH={self.search_path}\nexport PATH\nif [ -f ~/.profile ]; then . ~/.profile; fi\n"


def _covered(path: pathlib.Path) -> bool:
    # /usr is visible in every sandbox. A prefix of / would show the whole host and never is one in practice.
    return path == pathlib.Path("/") or path.is_relative_to("/usr")
