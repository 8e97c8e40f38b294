"""What the door does to uploads on Gradio's own route: too large or broken off, they leave nothing on the disk."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import gradio.route_utils
import pytest
from gradio.routes import App
from starlette.middleware import Middleware

from dpicl_ui.frame.internals import TidyParser
from dpicl_ui.server import doorkeeper
from dpicl_ui.server.doorkeeper import Doorkeeper
from dpicl_ui.server.serving import sweep
from tests.ui.visit import ROOT

SECRET = b"Mr Quillfeather of 12 Orchard Lane"
HEAD = b'--b\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n\r\n'
END = b"\r\n--b--\r\n"
LARGEST = 4000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Gradio behind the door, with small limits and a folder of its own for uploads."""
    folder = tmp_path_factory.mktemp("served") / "uploads"

    async def made() -> App:  # in a loop: Gradio asks for one, and leaves open the one that it makes for itself
        page = gr.Blocks(analytics_enabled=False)
        page.max_file_size = LARGEST
        return App.create_app(page, app_kwargs={"middleware": [Middleware(Doorkeeper)]})

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(folder))
        patch.setattr("gradio.route_utils.GradioMultiPartParser", TidyParser)
        patch.setattr(doorkeeper, "MOST_UPLOADED", LARGEST + 1000)
        patch.setattr(doorkeeper, "MOST_ASKED", LARGEST)
        yield asyncio.run(made())


@pytest.fixture
def app(served: App) -> App:
    shutil.rmtree(served.uploaded_file_dir, ignore_errors=True)
    return served


def ask(
    app: App, parts: list[bytes], path: str = "/gradio_api/upload", ends: int = 0, **headers: str
) -> tuple[int, str]:
    """The answer to a request that comes in parts, the last of which is END, or number `ends`; else it breaks off."""
    sent: list[Any] = []
    coming = enumerate(parts, 1)
    given = {"host": "127.0.0.1", "content-type": "multipart/form-data; boundary=b", **headers}

    async def receive() -> dict[str, Any]:
        number, part = next(coming, (0, None))
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": number != ends and not part.endswith(END)}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": "", "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1), "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent).decode()


def left(app: App) -> list[Path]:
    return [path for path in Path(app.uploaded_file_dir).parent.rglob("*") if path.is_file()]


def test_an_upload_that_is_whole_arrives(app: App):
    status, _ = ask(app, [HEAD % b"x.csv" + SECRET, END])
    assert status == 200
    assert [path.read_bytes() for path in left(app)] == [SECRET]


@pytest.mark.parametrize("name", [b"../../../x.csv", b"/etc/x.csv", b"..\\..\\x.csv", b"..", b"a/../../x", b"\xff\x00"])
def test_no_name_leads_an_upload_out_of_its_folder(app: App, name: bytes):
    ask(app, [HEAD % name + SECRET, END])
    assert all(path.is_relative_to(app.uploaded_file_dir) for path in left(app))
    assert not Path("/etc/x.csv").exists()


@pytest.mark.parametrize("parts", [[], [SECRET], [SECRET, SECRET]])
def test_an_upload_that_breaks_off_leaves_nothing(app: App, parts: list[bytes]):
    assert ask(app, [HEAD % b"x.csv" + SECRET, *parts])[0] == 400
    assert left(app) == []


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD % b"x.csv" + bytes(LARGEST + 1), END],
        [HEAD % b"x.csv", *[bytes(100)] * 1000],
        [HEAD % b"x.csv" + bytes(LARGEST) + b"\r\n" + HEAD % b"y.csv" + bytes(LARGEST), END],
        [b'--b\r\nContent-Disposition: form-data; name="field"\r\n\r\n', *[bytes(100)] * 1000],
    ],
    ids=["one file", "without an end", "together", "a field, which is kept in memory"],
)
def test_an_upload_that_is_too_large_is_refused_in_one_line_and_leaves_nothing(app: App, parts):
    status, said = ask(app, parts)
    assert status == 413
    assert len(said.splitlines()) == 1
    assert left(app) == []


OTHER = HEAD.replace(b"files", b"other") % b"x.csv" + SECRET
TEXT = b'--b\r\nContent-Disposition: form-data; name="files"\r\n\r\n' + SECRET


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([OTHER, END], 200),
        ([HEAD % b"x.csv" + SECRET], 200),
        ([HEAD % b".." + SECRET, END], 400),
        ([TEXT, END], 400),
        ([HEAD % b"x.csv" + SECRET + b"\r\n" + TEXT, END], 400),
        ([HEAD % b"x.csv" + SECRET + b"\r\n--b\r\n\r\n" + SECRET, END], 400),
    ],
    ids=["another field", "no end of the form", "no name", "a text", "a text beside a file", "a part without a field"],
)
def test_what_is_no_upload_is_not_kept(app: App, parts: list[bytes], status: int):
    assert ask(app, parts, ends=len(parts))[0] == status
    assert left(app) == []


def test_a_request_that_says_how_large_it_is_is_not_read_at_all(app: App):
    assert ask(app, [], **{"content-length": str(LARGEST * 2)})[0] == 413
    assert left(app) == []


@pytest.mark.parametrize("path", ["/gradio_api/queue/join", "/gradio_api/run/x", "/login"])
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_other_requests_have_a_size_too_whoever_asks(app: App, path: str, kind: str):
    taken: list[int] = []

    def endless() -> Iterator[bytes]:
        for _ in range(1000):
            taken.append(100)
            yield bytes(100)

    status, _ = ask(app, endless(), path, **{"content-type": f"{kind}; boundary=b"})  # type: ignore[arg-type]
    assert 400 <= status < 500
    assert sum(taken) <= LARGEST + 200


# The temporary folder of a process: nobody else's goes, and nothing of its own stays.

LIVING = """
import sys, tempfile, time
from pathlib import Path
from dpicl_ui.server.serving import TemporaryFolder
folder = TemporaryFolder(Path(sys.argv[1]))
folder.use()
tempfile.NamedTemporaryFile(delete=False).write(b"a private cell")
print(folder.path, flush=True)
time.sleep(600)
"""


def living(base: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", LIVING, str(base)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process.stdout as said:
        return process, Path(said.readline().strip())


def test_whoever_is_told_to_end_leaves_nothing(tmp_path):
    process, folder = living(tmp_path)
    assert any(folder.iterdir())
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    assert not any(tmp_path.iterdir())


def test_whoever_was_killed_is_cleaned_up_by_the_next_and_whoever_lives_is_not(tmp_path):
    process, killed = living(tmp_path)
    other, alive = living(tmp_path)
    process.kill()
    process.wait(60)
    assert killed.exists()
    sweep(tmp_path)
    assert not killed.exists()
    assert len(list(alive.iterdir())) > 1
    other.terminate()
    other.wait(60)
