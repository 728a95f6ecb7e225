# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that a network in C cannot have: those of the languages, of their library, and of the files that call it."""

from __future__ import annotations

import re

_OF_C = """alignas alignof auto bool break case char const constexpr continue default do double else enum extern false
float for goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct
switch thread_local true typedef typeof typeof_unqual union unsigned void volatile while"""
_OF_CPP = """and and_eq asm bitand bitor catch char16_t char32_t char8_t class co_await co_return co_yield compl
concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend mutable namespace new
noexcept not not_eq operator or or_eq private protected public reinterpret_cast requires static_cast template this
throw try typeid typename using virtual wchar_t xor xor_eq"""
_MATH = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor
fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc"""
_BESSEL = "gamma j0 j1 jn y0 y1 yn exp10 drem significand scalb finite"
_OTHER_MATH = """div_t double_t float_t fpclassify isfinite isgreater isgreaterequal isinf isless islessequal
islessgreater isnan isnormal isunordered signbit signgam INFINITY NAN"""
_STDIO = """FILE BUFSIZ EOF clearerr dprintf fclose fdopen feof ferror fflush fgetc fgetpos fgets fileno fmemopen
fopen fprintf fputc fputs fread freopen fscanf fseek fseeko fsetpos ftell ftello fwrite getc getchar getdelim getline
gets open_memstream pclose perror popen printf putc putchar puts remove rename rewind scanf setbuf setvbuf snprintf
sprintf sscanf stderr stdin stdout tmpfile tmpnam ungetc vdprintf vfprintf vfscanf vprintf vscanf vsnprintf vsprintf
vsscanf"""
_STDLIB = """abort abs aligned_alloc at_quick_exit atexit atof atoi atol atoll bsearch calloc div div_t exit free
getenv labs ldiv llabs lldiv malloc mblen mbstowcs mbtowc posix_memalign putenv qsort quick_exit rand random realloc
setenv srand srandom strtod strtof strtol strtold strtoll strtoul strtoull system unsetenv wcstombs wctomb"""
_STRING = """bcmp bcopy bzero ffs index memccpy memchr memcmp memcpy memmove mempcpy memset rindex stpcpy stpncpy
strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror strlen strncasecmp strncat strncmp strncpy
strndup strnlen strpbrk strrchr strsep strsignal strspn strstr strtok strtok_r strxfrm NULL size_t"""
_SYSTEM = """asctime assert clock close ctime difftime environ errno getpid gmtime localtime longjmp main mktime open
pipe raise read setjmp signal sleep stat strftime time unix linux write"""

_KEYWORDS = frozenset(f"{_OF_C} {_OF_CPP}".split())
_LIBRARY = frozenset(
    [
        *f"{_OTHER_MATH} {_STDIO} {_STDLIB} {_STRING} {_SYSTEM}".split(),
        *(name + end for name in f"{_MATH} {_BESSEL}".split() for end in ("", "f", "l")),
    ]
)
_TYPES = r"u?int(_least|_fast)?(8|16|32|64)_t|u?int(ptr|max)_t|ptrdiff_t|[A-Z][A-Z0-9]*_(MAX|MIN|WIDTH)|U?INT[0-9]+_C"
_OWN = r"compare_\w+|read_b?f16|result[0-9]+|largest|message|packed|workspace"
"""Of the program that runs the example."""


def check_c_name(name: str, arguments: str) -> None:
    """A `ValueError`, with the reason, where the function of a network cannot be called so.

    `arguments`: the module, whose arguments have names.
    """
    reason = None
    names = re.findall(r'kas\.name = "([^"]*)"', arguments)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        reason = "letters, digits and underscores, of which the first is a letter"
    elif name in _KEYWORDS:
        reason = "no keyword of C or C++"
    elif name in _LIBRARY or re.fullmatch(_TYPES, name):
        reason = "no name of C's library"
    elif re.fullmatch(_OWN, name) or name in {re.sub(r"\W", "_", one) for one in names}:
        reason = "no name of an argument or of what the files use"
    if reason:
        raise ValueError(f"'name' requires {reason}, got '{name}'")
