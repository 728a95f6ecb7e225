"""Finds words that the terms of the field have replaced.

usage: tools/words.py ROOT

Looks at the text files of ROOT that git tracks or, where ROOT is no working tree, at all. Each rule has an expression,
the words to use instead, and the files in which the word may be: definitions of aliases, their tests and their pages,
keys of data that is read. Rules of texts hold everywhere; those of pages in Markdown, outside of code; those of names
in identifiers of C++, TableGen, MLIR and Python and in names of options, passes and files: `isOfWords`, `is_of_words`
and `is-of-words` are the name "is of words".
"""

import json
import pathlib
import re
import subprocess
import sys

PLACES = ("include", "lib", "tools", "test", "cmake", "python", "docs", "research", ".ci")
SUFFIXES = {".c", ".cmake", ".cpp", ".css", ".h", ".html", ".in", ".js", ".md", ".mlir", ".py", ".sh", ".td", ".test"}
SUFFIXES |= {".toml", ".txt", ".yaml", ".yml"}
# Those whose names are looked at.
NAMED = {".c", ".cmake", ".cpp", ".h", ".in", ".md", ".mlir", ".py", ".sh", ".td", ".test", ".txt"}
# The words themselves.
EXEMPT = ("CHANGELOG.md", "tools/words.py", "test/Docs/vocabulary.test", "test/Tools/former-names.test")
# A space of an expression: also the end of a line, with what begins the next one in a comment.
GAP = r"(?:[ \t]|\n[ \t]*(?://[/!]?|#|\*|\|\*)?)"

# (expression, what to write, files in which it is allowed)
RULES = (
    (
        r"roads?",
        "'strategy' (of a contraction) or 'lowering path' (of an operator)",
        (
            "docs/internals/rationale/files-and-options.md",
            "include/kas/Codegen/GPU/Strategy/Options.h",
            "lib/Codegen/GPU/Strategy/Options.cpp",
            "python/kas/_module.py",
            "test/Codegen/GPU/option-values.test",
            "test/Codegen/GPU/schedule.mlir",
            "test/Codegen/GPU/tensor-core-nvvm.test",
            "test/python/test_names.py",
        ),
    ),
    (r"\w*behind\w*", "'after', 'following' or 'past'", ()),
    (r"in front of", "'before' or 'preceding'", ()),
    (
        r"judg\w*",
        "'evaluator', 'metric', 'proxy' or 'evaluated'",
        ("python/kas/evaluate/judges.py", "test/python/test_names.py"),
    ),
    (r"told", "'reported', 'given' or 'distinguished'", ()),
    (r"asked (?:for|of|to)|(?:was|were|is|are|been|be|not) asked", "'requested' or 'queried'", ()),
    (
        r"walks(?!\()",
        "'rollouts' (of a search), 'steps' or 'traversals'",
        # The former names of parameters, and the key in databases.
        (
            "lib/Search/Core/MakeSearcher.cpp",
            "lib/Search/Core/SearchStore.cpp",
            "docs/guide/searching.md",
            "test/unittests/Search/Core/SearchersTest.cpp",
            "test/unittests/Search/Store/SearchStoreTest.cpp",
        ),
    ),
    (r"(?:an?|the|random|uniform|each|every|some|one) walk(?!\()", "'rollout' (of a search) or 'traversal'", ()),
    (r"dear(?:er|est)?", "'expensive'", ()),
    (r"(?:stands?|stood|standing)(?!-in| in for|s? for)", "'is', 'is in' or 'is next to'", ()),
    (r"found out|finds? out|no small thing", "'determined', or plain words", ()),
    (r"(?:says?|said) of", "'reports about' or 'states for'", ()),
)
# Those of pages. A sentence begins with the thing that it is about, unless it is a question.
PAGE_RULES = (
    (r"multipl\w+ (?:the )?bytes|becom\w+ bytes|products of bytes", "'int8'", ()),
    (r"tails?", "'epilogue'", ()),
    (r"prepared (?:weights|ahead|costs)|weights(?: that)?(?: are| were)? prepared", "'prepacked'", ()),
    (r"lines? of (?:the images?|images?|memory)", "'rows of the image' or 'cache lines'", ()),
    (r"(?:is|was|be) no number|not a number|(?:or|and) no numbers?", "'NaN'", ()),
    (r"laps?", "'timestamps'", ()),
    (r"anew", "'again'", ()),
    (r"step sizes?", "'learning rate'", ()),
    (r"samples last", "'batch-innermost'", ()),
    (r"living (?:states?|tree)|tree of living", "'live-state tree'", ()),
    (r"timed in turn|times? both in turn|in turn in one run", "'interleaved'", ()),
    (r"words of (?:four|two|32)", "'VNNI groups'", ()),
    (
        r"sums? of products",
        "'contraction'",
        # Of polynomials, of tables, and the definition.
        (
            "docs/internals/proofs.md",
            "research/guide/python.md",
            "docs/internals/rationale/sameness.md",
            "docs/internals/testing.md",
            "docs/reference/glossary.md",
            "docs/reference/properties.md",
            "research/reports/structured-linear.md",
        ),
    ),
)
WHAT = re.compile(r"(?:^|(?<=[.:;!?)] )|(?<=\| )|(?<=\*\*))(?:[-*] |\d+\. )?What (?![^.\n]*\?)[^.|\n]*", re.MULTILINE)
# Their texts are of other files.
GENERATED = (
    "docs/reference/ops.md",
    "docs/reference/passes.md",
    "docs/reference/python.md",
    "research/guide/python.md",
)
# Names, as lower-case words with blanks between them. tools/words-left.json says how many there still are, by the words
# to use instead, in tens: never more.
NAME_RULES = (
    (r"prepare weights|(?:has|num|first) prepared|prepared elements|\w+ prepare$", "'prepack'", ()),
    (r"(?:contraction|direct|flatten|emit|takes?|took) tail|tail (?:time|inputs)", "'epilogue'", ()),
    (r"is of bytes|byte sum|(?:vector|scalar) bytes|is byte|shares bytes|to byte", "'int8'", ()),
    (r"word loop|get word size|view words|is of words", "'VNNI group'", ()),
    (r"step size", "'learning rate'", ()),
    (r"has steps|steps with vectors", "'strides'", ()),
    (r"samples last|sample wise", "'batch-innermost' or 'per sample'", ()),
    (r"laps?", "'timestamp'", ()),
    (r"makers?", "'builder', 'factory', 'producer' or a function", ()),
    (r"bordered shape|borders before|(?:emit|row vector) borders", "'padding'", ()),
    (r"(?:kas )?(?:pack|lower|suits|count) dots", "'dot products'", ()),
    (r"sums? of products|float products?|product (?:precision|passes|types)", "'contraction'", ()),
    (
        r"line loops?|shares lines|(?<!cache )line (?:time|elements)|lines (?:of tiles|before)",
        "'image row' or 'cache line'",
        (),
    ),
    (r"count points|point count|per point|(?:sum of|existing) points?", "'iterations'", ()),
    (
        r"(?:sample|output|window) places?|place error|(?:num|set|add|sum|choose|check|wrap|take|middle) places",
        "'position' or 'index'",
        (),
    ),
    (r"donations?|donated", "'transferred'", ()),
    (r"\w+ anew|anew \w+|measures? in turn", "'again' or 'interleaved'", ()),
    (r"(?:is )?not a number|no numbers?", "'NaN'", ()),
)
# Keys of files that are read, and names of others.
KEPT_NAMES = {
    "prepared_elements",
    "prepare_metadata_for_build_wheel",
    "sqlite3_prepare_v2",
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[a-z0-9]+)*|_[A-Za-z0-9_]+")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def blank_code(text):
    """The text of a page with blanks in place of code and headings."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])  # noqa: E731
    text = re.sub(r"^[ \t]*(```|~~~).*?^[ \t]*\1", blank, text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|^#.*", blank, text, flags=re.MULTILINE)


def get_files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode == 0 and (root / ".git").exists():
        paths = [pathlib.Path(path) for path in listed.stdout.split("\0") if path]
    else:
        paths = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
    for path in sorted(set(paths)):
        inside = path.parts[0] in PLACES or len(path.parts) == 1
        if inside and path.suffix in SUFFIXES and path.as_posix() not in EXEMPT and (root / path).is_file():
            yield path


def compile_words(words):
    return re.compile(rf"(?<![\w-])(?:{words})(?!\w)".replace(" ", GAP + "+"), re.IGNORECASE)


def find_names(text):
    """Names in a text, each as (name, where it begins, its words)."""
    for match in NAME.finditer(text):
        if match[0] not in KEPT_NAMES:
            yield match[0], match.start(), " ".join(word.lower() for word in WORD.findall(match[0]))


def compile_names():
    """One expression that some rule has a name by, as a first look, and that of each rule."""
    rules = [re.compile(rf"\b(?:{words})(?!\w)") for words, _, _ in NAME_RULES]
    return re.compile("|".join(rule.pattern for rule in rules)), rules


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    everywhere = [(compile_words(words), instead, allowed) for words, instead, allowed in RULES]
    in_pages = [(compile_words(words), instead, allowed) for words, instead, allowed in PAGE_RULES]
    in_pages.append((WHAT, "the thing at the start of the sentence", ()))
    any_name, in_names = compile_names()
    rules = everywhere + in_pages
    numbers, files, errors, lines = [0] * len(rules), 0, 0, 0

    in_all = [[] for _ in NAME_RULES]

    def report(path, text, start, found, number, instead, allowed):
        nonlocal errors
        if path.as_posix() in allowed:
            numbers[number] += 1
            return
        errors += 1
        line = text.count("\n", 0, start) + 1
        print(f"{path.as_posix()}:{line}: expected {instead}, got '{' '.join(found.split())}'")

    for path in get_files(root):
        text = (root / path).read_text(errors="replace")
        files += 1
        lines += text.count("\n")
        is_page = path.suffix == ".md" and path.parts[0] != "include" and path.as_posix() not in GENERATED
        page = blank_code(text) if is_page else ""
        for index, (expression, instead, allowed) in enumerate(rules):
            for match in expression.finditer(text if index < len(everywhere) else page):
                report(path, text, match.start(), match[0], index, instead, allowed)
        # Of data there is a name at most.
        text = f"{path.stem}\n{text}" if path.suffix in NAMED else path.stem
        for name, start, words in find_names(text):
            if not any_name.search(words):
                continue
            for index, expression in enumerate(in_names):
                if expression.search(words):
                    line = text.count("\n", 0, start)
                    in_all[index].append(
                        f"{path.as_posix()}:{max(line, 1)}: expected {NAME_RULES[index][1]}, got '{name}'"
                    )
    left = root / "tools" / "words-left.json"
    most = json.loads(left.read_text()) if left.is_file() else {}
    for (_, instead, _), found in zip(NAME_RULES, in_all):
        if len(found) > most.get(instead, 0):
            errors += len(found)
            print("\n".join(found))
    if errors:
        print(f"{errors} old words")
        return 1
    print(f"0 old words in {lines} lines of {files} files")
    for (words, _, _), count in zip(RULES + PAGE_RULES, numbers):
        print(f"allowed {count}: {words}")
    return 0


sys.exit(main())
