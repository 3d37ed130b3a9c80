"""Keys that are known by their shape alone, with no name before them; and ordinary words that look a little like one."""

import pytest

from vigil.observer.redact import Redactor

# Put together here, so that nobody's scanner takes them for keys.
SHAPES = {
    "GitHub, old": "ghp_" + "A1b2C3d4E5f6G7h8",
    "GitHub, of an app": "ghs_" + "A1b2C3d4E5f6G7h8I9",
    "GitHub, fine-grained": "github_pat_" + "11ABCDEFG0abcdefghij_KLMNOPQRSTUV",
    "GitLab": "glpat-" + "x1Yz-abcdefghij_KLMN",
    "NVIDIA": "nvapi-" + "a1b2c3d4-e5f6g7h8_i9J0",
    "Slack, of a bot": "xoxb-" + "123456789012-abcdefABCDEF",
    "Slack, of a person": "xoxp-" + "123456789012-123456789012",
    "Google": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p",
    "AWS, of a session": "ASIA" + "ABCDEFGHIJKLMNOP",
}


@pytest.mark.parametrize("owner", SHAPES)
@pytest.mark.parametrize(
    "line", ["{}", "401 for {} at once", "using '{}', retrying", "header={}", "({})", "https://host/x/{}/y"]
)
def test_key_is_hidden_by_its_shape(owner: str, line: str) -> None:
    assert Redactor().clean(line.format(SHAPES[owner])) == line.format("***")


@pytest.mark.parametrize("owner", SHAPES)
def test_key_in_a_command_line_is_hidden_by_its_shape(owner: str) -> None:
    assert Redactor().clean_argv(("serve", "m", SHAPES[owner])) == ("serve", "m", "***")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("GET /m.gguf?token=abcd1234&x=1 HTTP/1.1", "GET /m.gguf?token=***&x=1 HTTP/1.1"),
        ("GET /m.gguf?x=1&access_token=abcd1234", "GET /m.gguf?x=1&access_token=***"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Signature=0a1b2c3d&y=2", "https://b.s3.amazonaws.com/k?X-Amz-Signature=***&y=2"),
        ("https://b.s3.amazonaws.com/k?X-Amz-Security-Token=0a1b2c3d", "https://b.s3.amazonaws.com/k?X-Amz-Security-Token=***"),
        ("https://a.blob.core.windows.net/c/m?sv=2024&sig=aB%2Bc%3D", "https://a.blob.core.windows.net/c/m?sv=2024&sig=***"),
        ("'https://host/x?sig=abcd' failed", "'https://host/x?sig=***' failed"),
    ],
)  # fmt: skip
def test_key_in_an_address_is_hidden_and_the_rest_of_it_is_shown(text: str, clean: str) -> None:
    assert Redactor().clean(text) == clean


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_private_key_on_one_line_is_hidden_behind_its_head(kind: str) -> None:
    head = f"-----BEGIN {kind}PRIVATE KEY-----"
    assert Redactor().clean(rf"env: {head}\nMIIEpAIBAAKCAQEA\n-----END") == f"env: {head}***"


@pytest.mark.parametrize(
    "text",
    [
        "github_pat_ is how the new tokens of GitHub begin",
        "see docs/github_pat_rotation.md",
        "load nvapi-ms-win.dll",
        "glpat-x is too short to be one",
        "xoxo, your scheduler",
        "flag xox-mode is on, xoxb-short is no key",
        "AIzawa Kenichi wrote this kernel",
        "AKIARA is a town, ASIAN-FONTS a package",
        "class BAKIAIOSFODNN7EXAMPLE",
        "the graph ghp_attn_kernel was captured",
        "GET /v1/models?page=2&signal=off&design=flat HTTP/1.1",
        "num_tokens=4096&max_tokens=16",
        "GET /x?sig=on",
        "GET /generate?max_tokens=128&token_count=4096",
        "-----BEGIN CERTIFICATE-----MIIDdzCCAl+gAwIBAgIE",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----",
        "basic auth is off, bearer token is missing",
        "sk-learn is not installed",
        "hf_transfer is not installed, hf_xet is",
        "eyJ is how a header of JSON begins",
    ],
)
def test_ordinary_words_stay_readable(text: str) -> None:
    assert Redactor().clean(text) == text
