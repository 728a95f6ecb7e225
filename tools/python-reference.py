#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the reference pages from docstrings of kas and kas_research, or with --check says whether they are up to date.

usage: PYTHONPATH=build/python $(tools/python.sh) tools/python-reference.py [--check]
"""

import ast
import difflib
import enum
import importlib
import inspect
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODULES = [
    "kas",
    "kas.torch",
    "kas.onnx",
    "kas.evaluate",
    "kas.evaluate.proxies",
    "kas.report",
    "kas.distributed",
    "kas.zoo",
]
RESEARCH = [
    "kas_research.protocol",
    "kas_research.protocol.statistics",
    "kas_research.study",
    "kas_research.bench1",
    "kas_research.structured",
]
HEAD = """# {title}

<!-- Generated from the docstrings by tools/python-reference.py; edit them there. -->

{introduction}; this page lists every public name.
"""
PAGES = {
    "docs/reference/python.md": (
        MODULES,
        HEAD.format(
            title="Python reference", introduction="The page [Python](../guide/python.md) introduces the package"
        ),
    ),
    "research/guide/python.md": (
        RESEARCH,
        HEAD.format(title="Python reference of research", introduction="`kas_research` is a package of its own"),
    ),
}
"""Modules and first lines of each page."""


def list_names(module):
    """The public names, with those that are imported when they are used."""
    lazy = (getattr(module, group, ()) for group in ("_OF_ACCELERATE", "_OF_MODEL_SEARCH"))
    return [*module.__all__, *(name for group in lazy for name in group)]


def get_doc(thing):
    return inspect.cleandoc(thing.__doc__ or "")


def get_signature(function, name, skip_self=False):
    """The head of the definition, as it is written in the source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    except (OSError, TypeError, SyntaxError):
        return f"{name}{inspect.signature(function)}"
    arguments = tree.args
    if skip_self and arguments.args:
        arguments.args = arguments.args[1:]
    result = f" -> {ast.unparse(tree.returns)}" if tree.returns is not None and name != "__init__" else ""
    return f"{name}({ast.unparse(arguments)}){result}"


def get_fields(cls):
    """Documented attributes, in the class or set in `__init__`: the name, the type, the text after it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError):
        return
    initializers = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    for body in (tree.body, *(node.body for node in initializers)):
        for node, after in zip(body, [*body[1:], None]):
            if not isinstance(node, ast.AnnAssign):
                continue
            name = node.target.id if isinstance(node.target, ast.Name) else getattr(node.target, "attr", "_")
            is_text = (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            )
            if name.startswith("_") or (body is not tree.body and not is_text):
                continue
            yield name, ast.unparse(node.annotation), inspect.cleandoc(after.value.value) if is_text else ""


def get_members(cls):
    """Methods and properties that the class itself defines, in the order of the source."""
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if name == "__call__" or not name.startswith("_"):
            if isinstance(function, property) or type(function).__name__ == "cached_property":
                getter = function.fget if isinstance(function, property) else function.func
                yield name, None, get_doc(getter)
            elif inspect.isfunction(function):
                yield name, get_signature(function, name, not isinstance(member, staticmethod)), get_doc(function)


def indent(text):
    return textwrap.indent(text, "  ").strip()


def write_class(name, cls):
    lines = []
    makes = "__init__" in vars(cls) and not issubclass(cls, (tuple, enum.Enum)) and inspect.isfunction(cls.__init__)
    signature = (
        get_signature(cls.__init__, cls.__name__, True)
        if makes and not hasattr(cls, "__dataclass_fields__")
        else cls.__name__
    )
    doc = "" if get_doc(cls).startswith(f"{cls.__name__}(") else get_doc(cls)
    lines += [f"### `{name}`", "", f"```python\nclass {signature}\n```", "", doc, ""]
    for field, kind, text in get_fields(cls):
        lines.append(f"- **`{field}`**: `{kind}`{'. ' + indent(text) if text else ''}")
    fields = {field for field, _, _ in get_fields(cls)}
    for member, call, text in get_members(cls):
        if member not in fields:
            lines.append(f"- **`{call or member}`** {indent(text)}".rstrip())
    return [*lines, ""]


def write_module(name):
    module = importlib.import_module(name)
    lines = [f"## {name}", "", get_doc(module), ""]
    for entry in sorted(list_names(module), key=lambda entry: (entry[0].islower(), entry)):
        thing = getattr(module, entry)
        if entry.startswith("__") or inspect.ismodule(thing):
            continue
        title = f"{name}.{entry}"
        if inspect.isclass(thing):
            lines += write_class(title, thing)
        elif callable(thing):
            lines += [f"### `{title}`", "", f"```python\n{get_signature(thing, entry)}\n```", "", get_doc(thing), ""]
        else:
            lines += [f"### `{title}`", "", f"`{thing!r}`", ""]
    return lines


def make_page(modules, head):
    lines = [head]
    for name in modules:
        lines += write_module(name)
    text = "\n".join(lines)
    # Examples of docstrings are code.
    result, in_example = [], False
    for line in text.split("\n"):
        starts = line.lstrip().startswith((">>> ", "... "))
        if starts and not in_example:
            result.append("```python")
        if in_example and not starts:
            result.append("```")
        in_example = starts
        result.append(line)
    page = "\n".join(result)
    while "\n\n\n" in page:
        page = page.replace("\n\n\n", "\n\n")
    return page.rstrip() + "\n"


def get_undocumented():
    """What a reader of the page would miss."""
    for name in [*MODULES, *RESEARCH]:
        module = importlib.import_module(name)
        for entry in list_names(module):
            thing = getattr(module, entry)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and not get_doc(thing):
                yield f"{name}.{entry}"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.path.append(str(ROOT / "research"))
    missing = list(get_undocumented())
    if missing:
        sys.exit(f"error: no docstring: {', '.join(missing)}")
    outdated = []
    for name, (modules, head) in PAGES.items():
        path, page = ROOT / name, make_page(modules, head)
        before = path.read_text() if path.exists() else ""
        if not sys.argv[1:]:
            path.write_text(page)
        elif page != before:
            sys.stdout.writelines(
                difflib.unified_diff(before.splitlines(True), page.splitlines(True), name, "docstrings")
            )
            outdated.append(name)
    if outdated:
        sys.exit(f"error: {', '.join(outdated)}: not what the docstrings give; run tools/python-reference.py")


if __name__ == "__main__":
    main()
