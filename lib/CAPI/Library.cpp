//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to the named operators and kernels, and the version of the
// library.
// Strings are given to callbacks (`KasStream`) instead of being returned: no
// memory changes hands between allocators.
//
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "kas/Library/Operators.h"
#include "kas/Support/Version.h"

using namespace kas;
using namespace kas::library;

/// The version of the shared library, which may be another one than that of the
/// headers.
const char *kasGetVersion(void) { return getVersion(); }

/// Sorted by name, the same in every run.
static llvm::ArrayRef<NamedOperator> getEntries(KasLibrary library) {
  return library == KasLibraryOperators ? getNamedOperators()
                                        : getNamedKernels();
}

size_t kasLibraryGetSize(KasLibrary library) {
  return getEntries(library).size();
}

/// `index` is below `kasLibraryGetSize`.
void kasLibraryGetText(KasLibrary library, size_t index, KasLibraryText text,
                       KasStream output) {
  const NamedOperator &entry = getEntries(library)[index];
  CallbackStream stream(output);
  switch (text) {
  case KasLibraryTextName:
    stream << entry.name;
    return;
  case KasLibraryTextTitle:
    stream << entry.getTitle();
    return;
  case KasLibraryTextFormula:
    stream << entry.getFormula();
    return;
  case KasLibraryTextSource:
    stream << entry.getSource();
    return;
  // All of the file, comments included.
  case KasLibraryTextFile:
    stream << entry.text;
    return;
  }
}
