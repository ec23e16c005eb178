"""The endpoints as MCP tools: a run is its user's, another user does not stop it, nobody gets in without a token."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.event_loops import finished
from tests.support.served import served
from tokendyno.backend.hosting.users import Users

pytest.importorskip("mcp", reason='pip install "gradio[mcp]", in an environment of its own: it pins pydantic')
pytestmark = pytest.mark.slow


async def calls(url: str, token: str, *asked: tuple[str, dict[str, Any]]) -> tuple[list[str], list[tuple[bool, str]]]:
    """The names of the tools, and whether each call failed with what it said."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, follow_redirects=True, timeout=60) as link,
        streamable_http_client(f"{url}/gradio_api/mcp", http_client=link) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        names = [tool.name for tool in (await session.list_tools()).tools]
        replies = [await session.call_tool(name, values) for name, values in asked]
        return names, [(bool(one.isError), getattr(one.content[0], "text", "")) for one in replies]


def test_a_run_of_a_tool_belongs_to_the_user_of_its_token(tmp_path: Path) -> None:
    users = Users(tmp_path / "users.json")
    for name in ("ada", "bob"):
        users.add(name, "correct horse")
    ada, bob = users.new_token("ada"), users.new_token("bob")
    with served(tmp_path, "--mode", "team", "--users", str(users.path), "--mcp") as app:
        work = {"model": "pocket", "a": "dtype=float32", "max_new_tokens": 400, "prompt": "Once", "ignore_eos": True}
        names, [(failed, run), (refused, why)] = finished(
            calls(app.url, ada, ("run", work), ("run", {"model": "nope"}))
        )
        assert names == ["check", "run", "status", "result", "stop", "fit"] and not failed and len(run) == 24
        assert refused and "There is no model 'nope'" in why
        replies = finished(calls(app.url, bob, ("stop", {"run": run}), ("status", {"run": run})))[1]
        assert replies[0][0] and "another visitor" in replies[0][1] and json.loads(replies[1][1])["run"] == run
        assert not finished(calls(app.url, ada, ("stop", {"run": run})))[1][0][0]
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        assert app.ask("/gradio_api/mcp", body, {"Content-Type": "application/json"}).status == 401
        file = {"path": "http://huggingface.co/a", "meta": {"_type": "gradio.FileData"}}
        call = {"name": "check", "arguments": {"model": file}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        naming = app.ask("/gradio_api/mcp", body, {**sent, "Authorization": f"Bearer {ada}"})
        assert naming.status == 400 and "takes no files" in naming.said
        assert app.ask("/gradio_api/mcp/schema", headers={"Authorization": f"Bearer {ada}"}).status == 404
