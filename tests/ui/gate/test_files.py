"""No visitor makes Gradio fetch, copy or write a file: what names one does not reach it."""

import ast
import json
import socketserver
import threading
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import gradio
import pytest
from gradio_client import utils as client_utils  # type: ignore[import-untyped]

from tests.support.served import Served, served
from tokendyno.ui.gate.sessions import MAX_DEPTH

# --- what Gradio could do -------------------------------------------------------------------------

HANDLES_FILES = ("_to_cache", "_to_block_cache", "ssrf_protected_get", "ssrf_protected_download", "unsafe_download")
"""Endings of Gradio's functions that fetch, copy or write a file."""

AT_AN_EVENT = {
    # values of the inputs; bodies that name a file are refused
    "blocks.py preprocess_data: async_move_files_to_cache",
    # what handlers return: they make it themselves
    "blocks.py postprocess_data: async_move_files_to_cache",
    "blocks.py handle_streaming_outputs: async_move_files_to_cache",
    # values of the page while it is built
    "blocks.py serve_static_file: move_files_to_cache",
    "blocks.py get_block_instance: move_files_to_cache",
    "components/base.py __init__: move_files_to_cache",
    # what those come to
    "blocks.py async_move_resource_to_block_cache: async_ssrf_protected_download",
    "blocks.py async_move_resource_to_block_cache: save_file_to_cache",
    "blocks.py move_resource_to_block_cache: save_file_to_cache",
    "blocks.py move_resource_to_block_cache: save_url_to_cache",
    "processing_utils.py async_move_files_to_cache: _move_to_cache",
    "processing_utils.py move_files_to_cache: _move_to_cache",
    "processing_utils.py : ssrf_protected_download",  # as save_url_to_cache
    "processing_utils.py ssrf_protected_download: async_ssrf_protected_download",
    "processing_utils.py _move_to_cache: async_move_resource_to_block_cache",
    "processing_utils.py _move_to_cache: move_resource_to_block_cache",
    "processing_utils.py move_resource_to_block_cache: move_resource_to_block_cache",
    "processing_utils.py async_ssrf_protected_download: async_ssrf_protected_get",
    "processing_utils.py save_img_array_to_cache: save_pil_to_cache",
    # base64 that an MCP client sends for a parameter that is a file: no endpoint has one
    "mcp.py traverse: save_base64_to_cache",
    "mcp.py postprocess_output_data: save_bytes_to_cache",
}
"""Where events reach them, and why nothing of a visitor's does."""

NOT_HERE = {
    # of components that show images
    "image_utils.py format_image: save_pil_to_cache",
    "image_utils.py save_image: save_img_array_to_cache",
    "image_utils.py save_image: save_pil_to_cache",
    "image_utils.py extract_svg_content: async_ssrf_protected_get",
    # uploads
    "routes.py upload_file: move_uploaded_files_to_cache",
    # apps that are loaded, examples, Gradio's own history of runs, workflows
    "external.py custom_post_binary: save_base64_to_cache",
    "helpers.py _get_processed_example: move_files_to_cache",
    "history.py fetch_remote_asset: async_ssrf_protected_get",
    "workflow_provider_shims.py _get: async_ssrf_protected_get",
}
"""What this page does not have."""

OTHER_COMPONENTS = {
    f"components/{name}.py"
    for name in ("annotated_image", "audio", "dataset", "file", "gallery", "upload_button", "video")
}
"""Components that this page does not have: `OF_FILES`, held against it below."""

POSTED = {
    "/api/{api_name}",
    "/call/v2/{api_name}",
    "/call/{api_name}",
    "/cancel",
    "/component_server",
    "/gradio_api/upload",
    "/login",
    "/process_recording",
    "/profiling/clear",
    "/queue/join",
    "/reset",
    "/run-history/connect",
    "/run/{api_name}",
    "/stream/{event_id}",
    "/stream/{event_id}/close",
    "/undo-vibe-edit",
    "/upload",
    "/vibe-code",
    "/vibe-edit",
    "/vibe-starter-queries",
}
"""Every address of Gradio's to which something can be sent; `tokendyno.ui.gate.routes` opens three of them."""

OF_FILES = {
    "annotatedimage",
    "audio",
    "chatbot",
    "dataset",
    "downloadbutton",
    "file",
    "fileexplorer",
    "gallery",
    "image",
    "imageeditor",
    "imageslider",
    "model3d",
    "multimodaltextbox",
    "uploadbutton",
    "video",
}
"""Gradio's components that read, fetch or write files of their own accord."""


def test_every_place_where_gradio_handles_files_is_known() -> None:
    found, posted = set(), set()
    for path in sorted(Path(gradio.__file__).parent.rglob("*.py")):
        name = path.relative_to(Path(gradio.__file__).parent).as_posix()
        if name.startswith(("cli/", "test_data/", "_simple_templates/", "themes/")):
            continue
        for function, node in nodes_of(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Name | ast.Attribute) and name not in OTHER_COMPONENTS:
                named = node.id if isinstance(node, ast.Name) else node.attr
                if named.endswith(HANDLES_FILES) and isinstance(node.ctx, ast.Load):
                    found.add(f"{name} {function}: {named}")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "post":
                posted |= {str(each.value).rstrip("/") for each in node.args[:1] if isinstance(each, ast.Constant)}
    assert found == AT_AN_EVENT | NOT_HERE
    assert posted == POSTED


def nodes_of(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Everything in a file, with the innermost function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        yield function, node
        yield from nodes_of(node, node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function)


def test_gradio_takes_nothing_for_a_file_that_has_no_path() -> None:
    checks = [getattr(client_utils, name) for name in dir(client_utils) if name.startswith("is_file_obj")]
    assert len(checks) == 3
    file = {"url": "http://a.example/b", "meta": {"_type": "gradio.FileData"}, "orig_name": "b", "is_stream": False}
    assert all(check(file | {"path": "b"}) for check in checks)
    assert not any(check(each) for check in checks for each in (file, file | {"path": 1}, file | {"path": None}))


# --- what a visitor sends -------------------------------------------------------------------------


class Listener(socketserver.ThreadingTCPServer):
    """Counts who connects. The app takes it for the proxy through which it must fetch everything."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.connections = 0

    def process_request(self, *given: Any) -> None:
        self.connections += 1
        super().process_request(*given)


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with Listener() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory, listener: Listener) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("public")
    proxy = f"http://127.0.0.1:{listener.server_address[1]}"
    env = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "127.0.0.1", "GRADIO_TEMP_DIR": str(folder / "page")}
    with served(folder, "--mode", "public", env=env) as app:
        yield app


META = {"meta": {"_type": "gradio.FileData"}}
URL = "http://huggingface.co/a/b"  # of the hosts to which Gradio connects without looking up their address
FILE = json.dumps({"path": URL} | META)
NAMING_FILES = {
    "a file": FILE,
    "a file with more": json.dumps({"path": URL, "url": URL, "orig_name": "a", "is_stream": False} | META),
    "a local file": json.dumps({"path": "/etc/passwd"} | META),
    "a file without its type": json.dumps({"path": URL, "meta": 1}),
    "an old file": json.dumps({"path": URL}),
    "deep in lists and objects": '[{"a": [' * 8 + FILE + "]}]" * 8,
    "a key of a component": '{"value": ' + FILE + ', "path": 0}',
    "escaped": FILE.replace("path", "p\\u0061th").replace("FileData", "\\u0046ileData"),
    "named twice": FILE.replace('{"path"', '{"path": 1, "path"', 1),
    "deeper than any value": "[" * 200 + FILE + "]" * 200,
    "deeper than can be read": "[" * 2_000 + FILE + "]" * 2_000,
}
ROUTES = ("run/predict", "queue/join", "component_server")


def guest(app: Served) -> dict[str, str]:
    """A visitor's cookie, and that what comes is JSON."""
    jar: SimpleCookie = SimpleCookie(app.ask("/config").headers["set-cookie"])
    cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in jar.items())
    return {"Cookie": cookie, "Content-Type": "application/json"}


def files_of(app: Served) -> list[Path]:
    return sorted(app.history.parent.joinpath("page").rglob("*"))


@pytest.mark.slow
def test_nothing_is_fetched_and_no_file_appears(public: Served, listener: Listener) -> None:
    visitor, before = guest(public), files_of(public)
    page = public.config_of(visitor["Cookie"])
    assert not OF_FILES & {component["type"] for component in page["components"]}
    event = next(d for d in page["dependencies"] if len(d["inputs"]) > 3)
    refused = 0
    for route in ROUTES:
        for what, value in NAMING_FILES.items():
            for field in ("data", "event_data"):
                values = {"data": f"[{', '.join(['null'] * len(event['inputs']))}]", "event_data": "null"}
                values[field] = f"[{', '.join([value] * len(event['inputs']))}]" if field == "data" else value
                body = (
                    f'{{"data": {values["data"]}, "event_data": {values["event_data"]}, "fn_index": {event["id"]}, '
                    '"session_hash": "s", "trigger_id": null, "component_id": 1, "fn_name": "pull"}'
                )
                for sent in (body.encode(), body.encode("utf-16")):
                    answer = public.ask(f"/gradio_api/{route}", sent, visitor)
                    assert answer.status == 400, (route, what, field, answer)
                    refused += 1
    assert refused == len(ROUTES) * len(NAMING_FILES) * 4
    assert (listener.connections, files_of(public)) == (0, before)
    assert "Traceback" not in public.errors.read_text()


@pytest.mark.slow
def test_of_two_paths_gradio_sees_the_one_that_was_looked_at(public: Served, listener: Listener) -> None:
    visitor, before = guest(public), files_of(public)
    event = next(d for d in public.config_of(visitor["Cookie"])["dependencies"] if len(d["inputs"]) > 3)
    twice = FILE.replace("}}", '}, "path": 1}')
    for data in (f'"data": [{twice}]', f'"data": [{FILE}], "data": []'):
        body = f'{{{data}, "fn_index": {event["id"]}, "session_hash": "s", "trigger_id": null}}'
        assert public.ask("/gradio_api/run/predict", body.encode(), visitor).status != 400
    assert (listener.connections, files_of(public)) == (0, before)


@pytest.mark.slow
def test_a_prompt_may_say_what_a_file_looks_like(public: Served) -> None:
    visitor = guest(public)
    text = public.post("/gradio_api/run/predict", {"data": [FILE], "fn_index": 99_999, "session_hash": "s"}, visitor)
    assert "files" not in text.said
    deep: Any = "text"
    for _ in range(MAX_DEPTH - 2):
        deep = [deep]
    flat = public.post("/gradio_api/run/predict", {"data": deep, "fn_index": 99_999, "session_hash": "s"}, visitor)
    deeper = public.post("/gradio_api/run/predict", {"data": [deep], "fn_index": 1, "session_hash": "s"}, visitor)
    assert "levels" not in flat.said and "levels" in deeper.said
