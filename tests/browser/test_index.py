"""The page's HTML as a browser, and whoever previews a link, gets it from the app."""

import re

import httpx


def ask(address: str, path: str, encoding: str = "identity") -> httpx.Response:
    with httpx.Client(headers={"Accept-Encoding": encoding}) as client:
        return client.get(f"{address}{path}")


def test_a_link_shows_this_pages_name_and_opens_the_room_that_it_names(address: str) -> None:
    text = ask(address, "/?view=fit&model=%22%3Cb%3E").text
    told = dict(re.findall(r'<meta (?:property|name)="((?:og|twitter):\w+)" content="([^"]*)">', text))
    assert told["og:title"] == "Fit - tokendyno" and told["og:url"] == f"{address}/?view=fit&amp;model=%22%3Cb%3E"
    assert "dynamometer" in told["og:description"] and len(re.findall('"(?:og|twitter):', text)) == len(told) == 5
    assert "og:image" not in text, "no run is shown there"
    assert '"title":"Fit - tokendyno"' in text and '"selected":"fit"' in text and '"selected":"compare"' not in text


def test_a_link_to_a_run_shows_its_verdict_and_its_picture(address: str) -> None:
    for query, said in (
        ("run=recorded-batching", "useful tokens/s"),
        ("view=stories&story=compile", "compiling costs"),
    ):
        told = dict(re.findall(r'<meta property="og:([\w:]+)" content="([^"]*)">', ask(address, f"/?{query}").text))
        assert said in told["title"] and (told["image:width"], told["image:height"]) == ("1200", "630")
        assert ask(told["image"].removesuffix("/"), "").headers["content-type"] == "image/png"
    assert "37.7 against 55.8" in ask(address, "/?run=recorded-batching").text
    evil = ask(address, "/?run=evil").text
    assert "og:image" in evil and "<img src=x" not in evil
    assert "og:image" not in ask(address, "/?run=unknown").text


def test_an_address_opens_the_room_of_what_it_names(address: str) -> None:
    asked = {
        "view=worth": "worth",
        "view=FIT": "fit",
        "worth=stored-worth": "worth",
        "story=batching": "stories",
        "sweep=no-such": "worth",
        "b=cache=static": "compare",
    }
    for query, page in asked.items():
        assert f'"selected":"{page}"' in ask(address, f"/?{query}").text


def test_text_is_compressed_and_a_stream_of_events_is_not(address: str) -> None:
    for encoding, path in (("gzip", "/"), ("br", "/"), ("br", "/config")):
        packed = ask(address, path, encoding)
        assert packed.headers["content-encoding"] == encoding and "content-encoding" not in ask(address, path).headers
        assert int(packed.headers["content-length"]) < 200 * 1024
    with httpx.stream("GET", f"{address}/gradio_api/heartbeat/abc", headers={"Accept-Encoding": "br, gzip"}) as events:
        assert "content-encoding" not in events.headers
        assert next(events.iter_bytes()).startswith(b"data: "), "what was said is there at once"
