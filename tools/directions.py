"""Fails when a dependency points the wrong way.

    python tools/directions.py [ROOT]

What is held to (ARCHITECTURE.md says why):

* inside the engine: `buffer, wire, plan` <- `pace, net` <- `transfer` <- `client`,
  read from every `use` and every inline path that starts with `crate`, `self` or `super`;
* `plan`, `wire` and `buffer` never name the runtime or a socket, `plan` and `wire` no file;
* between crates: the engine knows neither the command line nor the embedded server, the
  embedded server doesn't know the engine, read from the manifests;
* the lab meets clients at a process boundary: its package imports none of them, but where nothing
  is measured: what fills a store, and AWS's own interface to machines.

It reads text and builds nothing, so that it takes no time and can't be left out. Macros that
paste paths together are beyond it; there are none.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

# A room may name the rooms of a lower rank.
RANK = {
    "text": -1,
    "checksum": 0,
    "error": 0,
    "sync": 0,
    "buffer": 1,
    "metrics": 1,
    "plan": 1,
    "wire": 1,
    "config": 2,
    "credentials": 2,
    "net": 2,
    "pace": 2,
    "transfer": 3,
    "client": 4,
}
# Rooms of this rank may name each other; those below stand alone.
TOGETHER = {2}
# What the rooms without a runtime may not name.
OUTSIDE = {
    "buffer": ("tokio", "std::net"),
    "wire": ("tokio", "std::net", "std::fs"),
    "plan": ("tokio", "std::net", "std::fs", "std::time"),
}
# crate -> crates that it must not need to build (its tests may start them).
CRATES = {
    "wirespeed": {
        "wirespeed-bulk",
        "wirespeed-cli",
        "wirespeed-local",
        "wirespeed-origin",
        "wirespeed-conformance",
    },
    "wirespeed-local": {"wirespeed", "wirespeed-bulk", "wirespeed-cli", "wirespeed-origin"},
    "wirespeed-bulk": {"wirespeed-cli", "wirespeed-origin", "wirespeed-conformance"},
    "wirespeed-cli": {"wirespeed-origin", "wirespeed-conformance"},
    "wirespeed-conformance": {"wirespeed-cli", "wirespeed-origin"},
    "wirespeed-python": {"wirespeed-cli", "wirespeed-origin"},
}
# crate -> crates that not even its tests may name: shared code would hide shared bugs.
STRANGERS = {"wirespeed-origin": {"wirespeed", "wirespeed-cli"}}
# Clients that the lab may only run as processes.
CLIENTS = {
    "awscrt", "boto3", "botocore", "fsspec", "minio", "obstore", "opendal", "pyarrow",
    "s3dlio", "s3fs", "s3torchconnector", "s3transfer", "wirespeed",
}  # fmt: skip
# Rooms of the lab that measure nothing -> what they may import of those.
UNMEASURED = {"cloud": {"boto3", "botocore"}, "stores": {"boto3", "botocore"}}

_BLANKED = re.compile(
    r"""(?P<gone>//[^\n]*|/\*.*?\*/
        |b?r(?P<hashes>\#*)".*?"(?P=hashes)
        |b?"(?:\\.|[^"\\])*"
        |'(?:\\.[^']*|[^'\\])')""",
    re.DOTALL | re.VERBOSE,
)
_TOKEN = re.compile(r"::|[A-Za-z_][A-Za-z0-9_]*|[{}*,;]|\S")
Token = tuple[str, int]


def tokens(source: str) -> list[Token]:
    """The words and marks of a Rust source with their lines, comments and literals left out."""
    blank = _BLANKED.sub(lambda m: "\n" * m["gone"].count("\n") or " ", source)
    found, line, seen = [], 1, 0
    for match in _TOKEN.finditer(blank):
        line += blank.count("\n", seen, match.start())
        seen = match.start()
        found.append((match[0], line))
    return found


def _use_tree(toks: list[Token], at: int, prefix: list[str]) -> tuple[list[list[str]], int]:
    """The paths of one `use` tree that starts at `at`, and where it ends."""
    path, paths = list(prefix), []
    while at < len(toks):
        word = toks[at][0]
        if word == "{":
            at += 1
            while toks[at][0] != "}":
                inner, at = _use_tree(toks, at, path)
                paths += inner
                at += toks[at][0] == ","
            return paths, at + 1
        if word in (",", "}", ";"):
            break
        if word == "as":
            at += 2
            continue
        if word != "::":
            path.append(word)
        at += 1
    return [path], at


def paths(source: str) -> Iterator[tuple[list[str], list[str], int]]:
    """(enclosing inline modules, path, line) of every path that a Rust source names."""
    toks, at = tokens(source), 0
    braces: list[str | None] = []
    while at < len(toks):
        word, line = toks[at]
        follows = toks[at + 1][0] if at + 1 < len(toks) else ""
        inside = [m for m in braces if m]
        if word == "mod" and at + 2 < len(toks) and toks[at + 2][0] == "{":
            braces.append(follows)
            at += 3
        elif word == "{":
            braces.append(None)
            at += 1
        elif word == "}":
            if braces:
                braces.pop()
            at += 1
        # `impl Trait + use<'a>` captures, and imports nothing.
        elif word == "use" and follows != "<":
            found, at = _use_tree(toks, at + 1, [])
            for path in found:
                yield inside, path, line
        elif follows == "::" and word.isidentifier():
            path, at = [word], at + 1
            while at + 1 < len(toks) and toks[at][0] == "::" and toks[at + 1][0].isidentifier():
                path.append(toks[at + 1][0])
                at += 2
            yield inside, path, line
        else:
            at += 1


def absolute(module: list[str], path: list[str]) -> list[str] | None:
    """The path from the crate's root, or None for one that leaves the crate."""
    if path[:1] == ["crate"]:
        return path[1:]
    if path[:1] not in (["self"], ["super"]):
        return None
    here, rest = list(module), list(path)
    while rest and rest[0] in ("self", "super"):
        if rest.pop(0) == "super" and here:
            here.pop()
    return here + rest


def engine(name: str, source: str) -> Iterator[str]:
    """What is wrong in one file of engine/src; `name` is its path below that folder."""
    module = list(Path(name).with_suffix("").parts)
    if module[-1] == "mod":
        module.pop()
    if module == ["lib"]:  # re-exports only: it names every room
        return
    room = module[0]
    if room not in RANK:
        yield f"engine/src/{name}:1: `{room}` is no known room: give it a rank in directions.py"
        return
    said = set()
    for inside, path, line in paths(source):
        where = f"engine/src/{name}:{line}"
        target = absolute(module + inside, path)
        if target is None:
            spelled = "::".join(path).lstrip(":")
            for outside in OUTSIDE.get(room, ()):
                if spelled == outside or spelled.startswith(outside + "::"):
                    yield f"{where}: `{room}` names `{outside}`, which it must not know"
        elif target and target[0] in RANK and target[0] != room:
            to = target[0]
            level = RANK[room] == RANK[to] and RANK[to] in TOGETHER
            if RANK[to] >= RANK[room] and not level and (to, line) not in said:
                said.add((to, line))
                yield f"{where}: `{room}` names `{to}`, but the arrow points from `{to}` to it"


def _needs(table: dict, workspace: dict) -> Iterator[str]:
    for key, value in table.items():
        value = value if isinstance(value, dict) else {}
        if value.get("workspace"):
            shared = workspace.get(key, {})
            value = shared if isinstance(shared, dict) else {}
        yield value.get("package", key)


def manifest(name: str, text: str, workspace: dict) -> Iterator[str]:
    """What is wrong in one crate's manifest; `workspace` is [workspace.dependencies]."""
    doc = tomllib.loads(text)
    crate = doc.get("package", {}).get("name", "")
    tables = [doc, *doc.get("target", {}).values()]
    for table in tables:
        built = {
            need
            for kind in ("dependencies", "build-dependencies")
            for need in _needs(table.get(kind, {}), workspace)
        }
        tested = set(_needs(table.get("dev-dependencies", {}), workspace))
        for need in sorted(built & CRATES.get(crate, set())):
            yield f"{name}: `{crate}` depends on `{need}`"
        for need in sorted((built | tested) & STRANGERS.get(crate, set())):
            yield f"{name}: `{crate}` depends on `{need}`, even if only in its tests"


def lab(name: str, source: str) -> Iterator[str]:
    """What is wrong in one Python file of the lab's own package."""
    allowed = UNMEASURED.get(Path(name).parent.name, set())
    for node in ast.walk(ast.parse(source, name)):
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            named = [node.module or ""]
        for one in named:
            if one.partition(".")[0] in CLIENTS - allowed:
                yield f"{name}:{node.lineno}: the lab imports `{one}`: run it as a process"


def tree(root: Path) -> Iterator[str]:
    """Everything that is wrong below `root`."""
    source = root / "engine" / "src"
    for file in sorted(source.rglob("*.rs")):
        yield from engine(file.relative_to(source).as_posix(), file.read_text())
    shared = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    for member in shared["members"]:
        for file in sorted(root.glob(f"{member}/Cargo.toml")):
            name = file.relative_to(root).as_posix()
            yield from manifest(name, file.read_text(), shared.get("dependencies", {}))
    for file in sorted((root / "lab" / "wirespeed_lab").rglob("*.py")):
        yield from lab(file.relative_to(root).as_posix(), file.read_text())


def main() -> int:
    """Prints what is wrong; the exit status says whether anything was."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    wrong = list(tree(root))
    for line in wrong:
        print(line)
    print(f"dependency directions: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
