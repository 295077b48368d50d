"""The sample for the type checker leaves no verb out, and the awaitable half of the stub is the
blocking half's."""

from __future__ import annotations

import ast
from pathlib import Path

import async_stubs
import pytest

SAMPLE = Path(__file__).parent / "typing_sample.py"


def verbs(view: str) -> set[str]:
    """The verbs of one view in the stub, between its marks."""
    source = async_stubs.STUB.read_text()
    begin, end = async_stubs.verbs(source, view)
    body = ast.parse("class _:\n" + source[begin:end]).body[0]
    assert isinstance(body, ast.ClassDef)
    return {node.name for node in body.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("view", "function"), [("Client", "blocking"), ("AsyncClient", "awaited")])
def test_the_sample_for_the_type_checker_has_every_verb(view, function):
    body = next(
        node
        for node in ast.parse(SAMPLE.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    )
    called = {
        node.func.attr
        for node in ast.walk(body)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert verbs(view) <= called


@pytest.mark.parametrize(
    ("blocking", "awaited"),
    [
        ("None", "Awaitable[None]"),
        ("builtins.list[Buffer]", "Awaitable[builtins.list[Buffer]]"),
        ("Stream", "Awaitable[AsyncStream]"),
        ("Listing", "AsyncListing"),
        ("Completions[Buffer | WirespeedError]", "AsyncCompletions[Buffer | WirespeedError]"),
    ],
)
def test_a_result_that_is_gone_through_has_its_counterpart_and_others_are_awaited(
    blocking, awaited
):
    assert async_stubs.awaitable(blocking) == awaited


def test_a_keyword_of_a_blocking_verb_that_the_other_lacks_is_noticed():
    source = async_stubs.STUB.read_text()
    assert async_stubs.generated(source) == source
    begin, _ = async_stubs.verbs(source, "Client")
    changed = source[:begin] + source[begin:].replace("*,", "*, new: int,", 1)
    assert async_stubs.generated(changed) != changed
    assert async_stubs.generated(changed).count("new: int") == 2
