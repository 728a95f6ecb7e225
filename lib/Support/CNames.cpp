//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names in generated code that C and C++ compilers accept.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/CNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using llvm::StringRef;

static bool isNameCharacter(char c) { return llvm::isAlnum(c) || c == '_'; }

bool kas::isCKeyword(StringRef name) {
  static const llvm::StringSet<> words = {
      // Keywords.
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor",
      "bool", "break", "case", "catch", "char", "char8_t", "char16_t",
      "char32_t", "class", "compl", "concept", "const", "consteval",
      "constexpr", "constinit", "const_cast", "continue", "co_await",
      "co_return", "co_yield", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false",
      "float", "for", "friend", "goto", "if", "inline", "int", "long",
      "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
      "operator", "or", "or_eq", "private", "protected", "public", "register",
      "reinterpret_cast", "requires", "restrict", "return", "short", "signed",
      "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
      "template", "this", "thread_local", "throw", "true", "try", "typedef",
      "typeid", "typename", "typeof", "typeof_unqual", "union", "unsigned",
      "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
      "xor_eq", "_Alignas", "_Alignof", "_Atomic", "_BitInt", "_Bool",
      "_Complex", "_Decimal32", "_Decimal64", "_Decimal128", "_Generic",
      "_Imaginary", "_Noreturn", "_Static_assert", "_Thread_local",
      // Macros and types of the standard headers, and macros that compilers
      // define by themselves.
      "assert", "complex", "errno", "imaginary", "main", "noreturn", "I",
      "NULL", "EOF", "INFINITY", "NAN", "stdin", "stdout", "stderr", "linux",
      "unix", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t",
      "uint32_t", "uint64_t", "size_t"};
  return words.contains(name);
}

bool kas::isCIdentifier(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) && !isCKeyword(name) &&
         llvm::all_of(name, isNameCharacter);
}

std::string kas::cleanForC(StringRef name) {
  std::string text;
  for (char c : name)
    text += isNameCharacter(c) ? c : '_';
  return text;
}
