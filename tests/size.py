#!/usr/bin/env python3
"""Prints the size of this tree, or of another one: tests/size.py [DIR] [BINARY].

Lines are those of code: no blank ones, no comments, no tests. Tokens are words, numbers, texts and signs. With BINARY, the
commands and the options that its help prints are counted too.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\w+|[^\w\s]', re.S)


def program(text):
    """A source up to its module of tests. What follows the declaration of such a module in a file of its own counts."""
    module = r"^#\[cfg\((?:all\()?test[^\n]*\n(?:#\[[^\n]*\n)*(?:pub(?:\([^)]*\))? )?mod \w+ {"
    return re.split(module, text, maxsplit=1, flags=re.M)[0]


def is_test(path):
    return path.stem.endswith("tests") or "tests" in path.parts


def code(text):
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("//")]


def main(root, binary):
    rooms, tokens, tests, docs, items = Counter(), Counter(), 0, 0, 0
    for path in sorted((root / "src").rglob("*.rs")):
        relative, text = path.relative_to(root / "src"), path.read_text()
        room = relative.parts[0] if len(relative.parts) > 1 else "."
        own = "" if is_test(relative) else program(text)
        tests += len(code(text)) - len(code(own))
        rooms[room] += len(code(own))
        tokens[room] += len(TOKEN.findall("\n".join(code(own))))
        docs += sum(line.strip().startswith(("///", "//!")) for line in own.splitlines())
        items += len(re.findall(r"^\s*pub (?:(?:const|unsafe|async) )*(?:fn|struct|enum|union|trait|type|const|static|mod) ", own, flags=re.M))
    tests += sum(len(code(path.read_text())) for path in (root / "tests").rglob("*.rs"))
    for room in sorted(rooms):
        print(f"{rooms[room]:7,} lines {tokens[room]:9,} tokens  {room}")
    print(f"{sum(rooms.values()):7,} lines {sum(tokens.values()):9,} tokens  in all")
    print(f"{tests:7,} lines of tests")
    print(f"{docs:7,} lines of documentation in sources")
    print(f"{items:7,} items that are `pub`")
    words = [path.read_text() for path in sorted((root / "docs").glob("*.md"))]
    print(f"{sum(len(text.encode()) for text in words):7,} bytes of the manual")
    print(f"{sum(len(text.split()) for text in words):7,} words of the manual")
    print(f"{len((root / 'CONTRIBUTING.md').read_bytes()):7,} bytes of CONTRIBUTING.md")
    if binary:
        def help_of(*words):
            return subprocess.run([binary, *words, "--help"], capture_output=True, text=True).stdout

        commands = re.findall(r"^  ([a-z-]+) {2,}", help_of("help") or help_of(), flags=re.M)
        options = [len(set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", help_of(*words), flags=re.M)))
                   for words in [(), *((command,) for command in commands)]]
        print(f"{len(commands):7,} commands")
        print(f"{sum(options):7,} options printed by all of them, {options[0]} by the first")


if __name__ == "__main__":
    here = Path(__file__).resolve().parent.parent
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here, sys.argv[2] if len(sys.argv) > 2 else None)
