"""What a sandbox sends without end is cut or refused as it comes: the process that reads it stays small."""

import textwrap

import pytest

from agent.errors import SandboxAnswerError
from support.e2b_process import E2BLocal
from support.measured import measured

MAX_GROWN_MB = 64

_PAST_THE_HOOK = textwrap.dedent("""\
    import IPython
    kernel = IPython.get_ipython().kernel
    def send(kind, content):
        kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent())
""")
_IMAGES = """\
for _ in range({count}):
    send("display_data", {{"data": {{"image/png": "A" * {size}}}, "metadata": {{}}}})
print("after")
"""


def cell(code: str, returns: str) -> str:
    """Return an attack that runs a cell that talks to the service past this package's hooks."""
    return (
        f"r = await box.run_code({_PAST_THE_HOOK + textwrap.dedent(code)!r}, timeout_s=60)\nreturn {returns}"
    )


def instead_of(program: str, script: str, then: str) -> str:
    """Return an attack that puts a script in a program's place, for all that comes after."""
    return "\n".join(
        [
            f"await sandbox.files.write('evil/{program}', {'#!/bin/sh' + chr(10) + script!r})",
            f"await sandbox.commands.run('mkdir -p project; chmod +x evil/{program}')",
            "await sandbox.files.write('.bash_profile', 'export PATH=~/evil:$PATH')",
            then,
        ]
    )


LIST = "return await box.work_on_files('list', path='/home/user', root='/home/user', also=[], most=10)"
TAR = """\
import io, tarfile
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode='w:gz') as made:
    info = tarfile.TarInfo('a')
    info.size = 100_000_000
    made.addfile(info, open('/dev/zero', 'rb'))
await sandbox.files.write('big.gz', packed.getvalue())
"""

ATTACKS = {
    "400 MB printed by a cell": cell(
        'for _ in range(20): send("stream", {"name": "stdout", "text": "x" * 20_000_000})\nprint("after")',
        "(r.stdout, len(r.results), r.error)",
    ),
    "120 MB printed by a cell in small pieces": cell(
        'for _ in range(4000): send("stream", {"name": "stderr", "text": "x" * 30_000})\nprint("after")',
        "(r.stdout, len(r.stderr) < 300_000, r.error)",
    ),
    "20 results of 20 MB": cell(
        _IMAGES.format(count=20, size=20_000_000),
        "(r.stdout, sum(len(v) for x in r.results for v in x.data.values()) < 3_000, r.error)",
    ),
    "40 results of 5 MB": cell(
        _IMAGES.format(count=40, size=5_000_000),
        "(r.stdout, sum('image/png' in x.data for x in r.results), r.error)",
    ),
    "400 MB on stderr without Python": """\
r = await box.run_command('head -c 400000000 /dev/zero >&2', timeout_s=60,
                          envs={'BASH_FUNC_command%%': '() { return 1; }'})
return (r.exit_code, len(r.stderr) < 300_000)
""",
    "a file of 400 MB": "await sandbox.commands.run('truncate -s 400M big')\n"
    "return await box.read_file('/home/user/big')",
    "another python3 that answers 400 MB": instead_of(
        "python3", "head -c 400000000 /dev/zero | tr '\\0' '['", LIST
    ),
    "another python3 that answers a deep list": instead_of(
        "python3", "head -c 7000000 /dev/zero | tr '\\0' '['", LIST
    ),
    "another python3 that answers a long list": instead_of(
        "python3", 'echo "["; yes "[],[],[],[],[],[],[],[]," | head -c 7000000; echo "0]"', LIST
    ),
    "a gzip in place of a tar": TAR
    + instead_of("tar", "cp ~/big.gz ~/.repair/out.tar", "return len(await work.read(['a']))"),
    "a listing of 400 MB": instead_of(
        "find", "truncate -s 400M ~/.repair/listing", "return await work.snapshot()"
    ),
    "a listing of 5,000,000 empty names": instead_of(
        "find", "head -c 5000000 /dev/zero > ~/.repair/listing", "return await work.snapshot()"
    ),
    "a mark of 400 MB": "await sandbox.commands.run('mkdir .repair; truncate -s 400M .repair/marker')\n"
    "return await work.marker()",
    "a JUnit report of 400 MB": "await sandbox.commands.run('mkdir .repair; truncate -s 400M "
    ".repair/junit.xml')\nreturn await work.junit()",
}
REFUSED = SandboxAnswerError.__name__
OUTCOMES = {
    "400 MB printed by a cell": "('after\\n', 20, None)",
    "120 MB printed by a cell in small pieces": "('after\\n', True, None)",
    "20 results of 20 MB": "('after\\n', True, None)",
    "40 results of 5 MB": "('after\\n', 4, None)",
    "400 MB on stderr without Python": "(0, True)",
    "a mark of 400 MB": "Marker(token='', done=0, task='', report='')",
    "a JUnit report of 400 MB": "b''",
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda name: name.replace(" ", "_"))
def test_what_comes_out_of_a_sandbox_is_bounded_on_arrival(sandboxes: E2BLocal, attack: str) -> None:
    """It is cut where a part is of use, else refused, and never held as a whole."""
    found = measured(sandboxes, ATTACKS[attack])
    assert found.said.startswith(OUTCOMES.get(attack, REFUSED)), found.said
    assert found.grown_mb <= MAX_GROWN_MB
