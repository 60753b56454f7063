"""Keys of every known form are masked in what is shown, to the offset; what only looks like one is left."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.trust.fencing import credentials, masked
from tests.support.command import clean_environment, run_cli

LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 12
HEX = "0123456789abcdef" * 6
SECRETS = {
    "xoxc": f"xoxc-{'1234567890-' * 3}{HEX[:40]}", "xoxe": f"xoxe-1-{LETTERS[:80]}", "xoxd": f"xoxd-{LETTERS[:60]}",
    "google client": f"GOCSPX-{LETTERS[:28]}", "gitlab runner": f"glrt-{LETTERS[:20]}", "gitlab": f"glpat-{LETTERS[:20]}",
    "gitlab deploy": f"gldt-{LETTERS[:20]}", "npm": f"npm_{LETTERS[:36]}", "pypi": f"pypi-AgEIcHlwaS5vcmc{LETTERS[:80]}",
    "docker": f"dckr_pat_{LETTERS[:27]}", "google": f"AIza{LETTERS[:35]}", "google access": f"ya29.{LETTERS[:60]}",
    "sendgrid": f"SG.{LETTERS[:22]}.{LETTERS[:43]}", "stripe": f"sk_live_{LETTERS[:24]}", "hugging face": f"hf_{LETTERS[:34]}",
    "openai": f"sk-proj-{LETTERS[:60]}", "anthropic": f"sk-ant-api03-{LETTERS[:80]}", "groq": f"gsk_{LETTERS[:52]}",
    "replicate": f"r8_{LETTERS[:37]}", "vault": f"hvs.{LETTERS[:90]}", "shopify": f"shpat_{HEX[:32]}", "databricks": f"dapi{HEX[:32]}",
    "digitalocean": f"dop_v1_{HEX[:64]}", "atlassian": f"ATATT3xFfGF0{LETTERS[:100]}", "linear": f"lin_api_{LETTERS[:40]}",
    "notion": f"ntn_{LETTERS[:46]}", "grafana": f"glsa_{LETTERS[:32]}_{HEX[:8]}", "square": f"sq0csp-{LETTERS[:43]}",
    "twilio": f"SK{HEX[:32]}", "mailgun": f"key-{HEX[:32]}", "mailchimp": f"{HEX[:32]}-us14", "telegram": f"123456789:AA{LETTERS[:33]}",
    "supabase": f"sbp_{HEX[:40]}", "tailscale": f"tskey-auth-{LETTERS[:30]}", "age": f"AGE-SECRET-KEY-1{LETTERS[:58].upper()}",
    "jwt": f"eyJhbGciOiJSUzI1NiJ9.eyJ{LETTERS[:60]}.{LETTERS[:80]}", "alibaba": f"LTAI{LETTERS[:20]}", "figma": f"figd_{LETTERS[:40]}",
    "azure storage": f"AccountName=lamps;AccountKey={LETTERS[:86]}==;EndpointSuffix=core", "azure bus": f"SharedAccessKey={LETTERS[:43]}=",
    "azure address": f"https://lamps.blob.core.windows.net/c?sv=2024-01-01&sig={LETTERS[:43]}%3D", "aws": "AKIAIOSFODNN7EXAMPLE",
    "slack hook": f"https://hooks.slack.com/services/T0123ABCD/B0456EFGH/{LETTERS[:24]}",
    "discord hook": f"https://discord.com/api/webhooks/123456789012345678/{LETTERS[:68]}",
    "database": "postgres://harbour:l4mp-0il-77@db.example.org:5432/lamps", "named": f'api_key = "{LETTERS[:32]}"',
    "session": f"aws_session_token={LETTERS[:200]}", "bearer": f'"access_token": "{LETTERS[:40]}"',
    "behind a line": f"-sk-{LETTERS[:40]}", "behind a name": f"prefix_sk-{LETTERS[:40]}", "in an address": f"key%20sk-{LETTERS[:40]}",
    "header": f"Authorization: Bearer {LETTERS[:40]}", "basic": "Authorization: Basic YWRhbWFyc2g6bDRtcC0waWwtNzc=",
    "discord bot": f"MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe.{LETTERS[:38]}", "full width": f"ｓｋ-{LETTERS[:40]}",
    "all of full width": "".join(chr(ord(ch) + 0xFEE0) for ch in "sk-") + LETTERS[:40], "no width": f"s\u200bk-{LETTERS[:40]}",
    "no width, inside": f"sk-\u200b{LETTERS[:40]}", "no width, shown": f"s\\u200bk-{LETTERS[:40]}",
    "no width, shown inside": f"sk-\\u200b{LETTERS[:40]}",
}  # fmt: skip


@pytest.mark.parametrize("kind", SECRETS)
def test_a_key_of_a_known_form_is_masked_and_every_offset_stays(kind: str) -> None:
    text = f"It is kept here: {SECRETS[kind]} since May."
    seen = masked(text)
    where = SECRETS[kind].partition("://")[2].partition("?")[2] or SECRETS[kind]
    secret = "l4mp" if kind == "database" else max(re.findall(r"[A-Za-z0-9]{10,}", where), key=len)[4:]
    assert len(seen) == len(text) and secret not in seen and "***" in seen and seen.endswith(" since May.")
    assert credentials(text)


@pytest.mark.parametrize("text", [
    "https://hooks.slack.com/services/ is where such an address begins", "postgres://user:password@localhost/db", "http://[::1]:8080/a@b",
    "the sk-learn-estimator", "https://example.org:8443/path@home", "the secret_key of settings.auth.secret_key_of_the_app",
    "token = tokenizer.next_token_of_the_stream()", "api_key = os.environ['OPENAI_API_KEY']", "key-value-stores-are-fast", "SKILLS",
    "mailto:ada@example.org", "commit 0123456789abcdef0123456789abcdef01234567", "a primary_key: 12345678901234567890", "glossary-of-the-sea",
    "see https://docs.example.org/a?b=c&sign=no", "git@github.com:ada/lamps.git", "1//2 of the page", "a:AAA rating",
    "get_fw_version_of_the_device_or_none()", "cache-key-0123456789abcdef0123456789abcdef", "the bearer of the 2nd letter of recommendation",
    "Authorization: Bearer YOUR_TOKEN_GOES_RIGHT_HERE", "basic understanding of it", "a-sk-learn-estimator-checks-for-all-classifiers",
    "ＳＫＩＬＬＳ\u200b２０２４", "C:\\users\\u200basic", "graphrag_mcp.MNO_settings_of_the_tests.loader.of_everything_that_is_there_to_see",
])  # fmt: skip
def test_what_only_resembles_a_key_is_left(text: str) -> None:
    assert masked(text) == text


def lines_of(data: bytes, width: int, end: str = "\n") -> str:
    packed = base64.b64encode(data).decode()
    return end.join(packed[at : at + width] for at in range(0, len(packed), width))


def rsa(bits: int) -> bytes:
    """The numbers of an RSA key as its file holds them; of a key that opens nothing."""
    chance = random.Random(bits)

    def length(size: int) -> bytes:
        return (
            bytes([size])
            if size < 128
            else bytes([0x80 + (size.bit_length() + 7) // 8]) + size.to_bytes((size.bit_length() + 7) // 8, "big")
        )

    def number(size: int) -> bytes:
        value = chance.getrandbits(size) | 1 << (size - 1)
        data = value.to_bytes(size // 8 + 1, "big")
        return b"\x02" + length(len(data)) + data

    body = (
        b"\x02\x01\x00"
        + number(bits)
        + b"\x02\x03\x01\x00\x01"
        + number(bits)
        + b"".join(number(bits // 2) for _ in range(5))
    )
    return b"\x30" + length(len(body)) + body


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bits", [2048, 3072])
def test_a_private_key_is_masked_whole_and_cut_in_pieces_with_every_line_end(bits: int, end: str) -> None:
    body = lines_of(rsa(bits), 64, end)
    whole = f"Keep it.{end}-----BEGIN RSA PRIVATE KEY-----{end}{body}{end}-----END RSA PRIVATE KEY-----{end}Done."
    seen = masked(whole)
    assert len(seen) == len(whole) and not any(line in seen for line in body.split(end)) and seen.endswith("Done.")
    lines = body.split(end)
    for at in range(0, len(lines) - 10):  # as a passage may cut it
        assert "***" in masked(end.join(lines[at : at + 10]) + end), at
    tail = end.join(lines[-4:]) + f"{end}-----END RSA PRIVATE KEY-----"
    assert not any(line in masked(tail) for line in lines[-4:]) and masked(tail).endswith(
        "-----END RSA PRIVATE KEY-----"
    )


# ---- on the command line ------------------------------------------------------------------------------------


def test_json_of_the_command_line_masks_keys_as_the_tools_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = SECRETS["openai"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text(
        f"# Crane {key}\n\nThe harbour crane of Ada Marsh opens with {key} since May.\n"
    )

    def said(*arguments: str) -> str:
        assert main([*arguments, "--home", str(tmp_path / "home")]) == 0
        return capsys.readouterr().out

    said("index", str(tmp_path / "docs"))
    for arguments in (["search", "harbour crane"], ["search", "harbour crane", "--mode", "text"], ["source", "t1"]):
        shown = said(*arguments, "--json")
        assert json.loads(shown)["text"] and key not in shown and key[4:20] not in shown, arguments
        assert key not in said(*arguments)
    (tmp_path / "s.toml").write_text("show_secrets = true\n")
    open_to_all = clean_environment(GRAPHRAG_MCP_SETTINGS=str(tmp_path / "s.toml"))
    assert key in run_cli("source", "t1", "--home", tmp_path / "home", "--json", env=open_to_all).stdout
