"""Checks the links of the pages, without a network.

usage: check-links.py ROOT

Pages are ROOT/*.md and those in ROOT/docs and ROOT/research. A relative link must lead to a file in ROOT, its anchor
to a heading of its page (with the anchors that GitHub and the site make); of others the form is checked. Paths
docs/... in sources and texts must exist, and research/... likewise, and so must paths of sources in pages (`lib/...`,
`kas/X/Y.h`; the begin of one will do). Each page of docs and research is once in the navigation of mkdocs.yml, and
each report begins with a table of date, machine, command and raw data.
"""

import collections
import pathlib
import re
import sys
import urllib.parse

MENTION = re.compile(r"\b(?:docs|research)/[\w./-]*\.(?:md|svg|jsonl\.xz|jsonl|csv|yaml|txt)\b")
# Not of a build tree or of the system.
SOURCE = re.compile(
    r"(?<![\w/.-])(?:(?:include|lib|test|tools|cmake|research)/|kas(?:-c|-rt)?/(?=[\w/]+\.h\b))[\w./-]*\w"
)
SOURCES = ("cmake", "include", "lib", "python", "research", "test", "tools", ".ci")
SUFFIXES = {".h", ".c", ".cpp", ".td", ".py", ".sh", ".cmake", ".txt", ".mlir", ".test", ".toml", ".yaml", ".in", ""}
FACTS = ("date", "machine", "command", "raw data")


def without_fences(text):
    """The lines of a page as (number, line), with fenced code left out."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = None
        elif fence is None:
            yield number, line


def get_anchors(text):
    """The anchors of the headings, and those that are written out."""
    anchors, seen = set(), collections.Counter()
    for _, line in without_fences(text):
        anchors.update(re.findall(r"""<\w+[^>]* (?:id|name)=["']([^"']+)["']""", line))
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
            anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return anchors


def get_links(text):
    """The links of a page as (line, target): inline links and images, definitions, and those of HTML."""
    for number, line in without_fences(text):
        line = re.sub(r"(`+).*?\1", "`", line)
        for target in re.findall(r"\]\(\s*<?([^\s)>]*)>?(?:\s+\"[^\"]*\")?\s*\)", line):
            yield number, target
        for target in re.findall(r"^\s*\[[^]]+\]:\s*<?([^\s>]+)", line):
            yield number, target
        for target in re.findall(r"""\b(?:href|src|srcset)=["']([^"' ]+)""", line):
            yield number, target


def check_target(root, page, target, anchors):
    """The error, or none."""
    if re.match(r"[a-zA-Z][a-zA-Z+.-]*:", target):
        url = urllib.parse.urlsplit(target)
        is_good = (url.scheme == "https" and "." in url.netloc) or (url.scheme == "mailto" and "@" in url.path)
        return None if is_good else f"requires an address of https or mailto, got '{target}'"
    path, _, anchor = urllib.parse.unquote(target).partition("#")
    file = (page.parent / path).resolve() if path else page
    if path.startswith("/") or not file.is_relative_to(root):
        return f"requires a relative path within the tree, got '{target}'"
    if not file.exists():
        return f"requires a file that exists, got '{target}'"
    if file.is_dir() and file.is_relative_to(root / "docs"):
        return f"requires a page, got the folder '{target}'"
    if anchor and file.suffix == ".md":
        if file not in anchors:
            anchors[file] = get_anchors(file.read_text())
        if anchor not in anchors[file]:
            return f"requires an anchor of that page, got '{target}'"
    return None


def check_links(root, pages, counts):
    anchors = {}
    for page in pages:
        for number, target in get_links(page.read_text()):
            counts["links"] += 1
            error = check_target(root, page, target, anchors)
            if error:
                yield f"{page.relative_to(root)}:{number}: {error}"


def check_mentions(root, pages):
    files = list(pages)
    for folder in SOURCES:
        files += [file for file in sorted((root / folder).rglob("*")) if file.is_file() and file.suffix in SUFFIXES]
    for file in files:
        # The test of this script holds dead ones.
        if file.name == "links.test" or "__pycache__" in file.parts:
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            for path in MENTION.findall(line):
                if not (root / path).exists() and not re.search(
                    r"(?:build[\w-]*|BINARY_DIR})/" + re.escape(path), line
                ):
                    yield f"{file.relative_to(root)}:{number}: requires a file that exists, got '{path}'"


def exists(path):
    """Whether it is a file or a folder, or the begin of some."""
    return path.exists() or (path.parent.is_dir() and any(path.parent.glob(path.name + "*")))


def check_sources(root, pages):
    """Whether the sources exist that pages name; X and T stand for any name, a library is made by the build."""
    for page in pages:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for path in SOURCE.findall(line):
                if path.endswith(".so") or re.search(r"/[XT]\b", path):
                    continue
                if not exists(root / path) and not exists(root / "include" / path):
                    yield f"{page.relative_to(root)}:{number}: requires a source that exists, got '{path}'"


def check_navigation(root, pages):
    entries = collections.Counter(re.findall(r"[\w/-]+\.md\b", (root / "mkdocs.yml").read_text()))
    for page in pages:
        path = page.relative_to(root).as_posix()
        if "/" in path and page.name != "README.md":
            path = path.removeprefix("docs/")
            if entries[path] != 1:
                yield f"mkdocs.yml: requires the page '{path}' once, got it {entries[path]} times"


def check_reports(root):
    for page in sorted((root / "research" / "reports").glob("*.md")):
        facts = re.findall(r"^\| ([\w ]+) \| \S", page.read_text().split("\n## ")[0], re.MULTILINE)
        for fact in FACTS:
            if page.name != "index.md" and fact not in facts:
                got = ", ".join(facts) or "none"
                yield f"{page.relative_to(root)}: requires a table with the row '{fact}', got {got}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "research").rglob("*.md")])
    counts = collections.Counter()
    errors = [*check_links(root, pages, counts), *check_mentions(root, pages), *check_sources(root, pages)]
    errors += [*check_navigation(root, pages), *check_reports(root)]
    for error in errors:
        print(error)
    if not errors:
        print(f"{counts['links']} links on {len(pages)} pages")
    return bool(errors)


sys.exit(main())
