//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Calls of the C interface: their texts, and their diagnostics as exceptions.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PYTHON_EXTENSION_CALLS_H
#define KAS_PYTHON_EXTENSION_CALLS_H

#include "kas-c/Kas.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kas::python {

namespace nb = nanobind;

/// Text that a C function writes.
class Text {
public:
  KasStream stream() {
    return {[](const char *text, size_t length, void *userData) {
              static_cast<std::string *>(userData)->append(text, length);
            },
            &text};
  }
  std::string take() { return std::move(text); }

private:
  std::string text;
};

using Diagnostic = std::tuple<std::string, std::string, std::string>;

/// The exception of a call that failed: its argument is the list of the
/// diagnostics, from which kas._errors makes a kas.Error.
struct Failure {
  std::vector<Diagnostic> diagnostics;
};

class Diagnostics {
public:
  KasDiagnostics sink() {
    return {[](KasSeverity severity, const char *location, const char *message,
               void *userData) {
              static constexpr const char *names[] = {"error", "warning",
                                                      "remark", "note"};
              static_cast<std::vector<Diagnostic> *>(userData)->emplace_back(
                  names[severity], location, message);
            },
            &diagnostics};
  }
  void check(bool success) {
    if (!success)
      throw Failure{std::move(diagnostics)};
  }
  std::vector<Diagnostic> take() { return std::move(diagnostics); }

private:
  std::vector<Diagnostic> diagnostics;
};

/// Calls without the lock of the interpreter, and raises what went wrong. Gives
/// what was said although nothing did.
template <typename Call>
std::vector<Diagnostic> run(Call call) {
  Diagnostics diagnostics;
  bool success = false;
  {
    nb::gil_scoped_release release;
    success = call(diagnostics.sink());
  }
  diagnostics.check(success);
  return diagnostics.take();
}

/// The text that a call writes, or what went wrong.
template <typename Call>
std::string read(Call call) {
  Text text;
  run([&](KasDiagnostics sink) { return call(text.stream(), sink); });
  return text.take();
}

inline const char *getPointer(const std::optional<std::string> &text) {
  return text ? text->c_str() : nullptr;
}

/// What the C interface takes; valid as long as `texts`.
inline std::vector<const char *>
getPointers(const std::vector<std::string> &texts) {
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(text.c_str());
  return pointers;
}

/// The names of metrics.
inline std::vector<const char *>
getPointers(const std::vector<std::string> &names,
            const std::vector<double> &values) {
  if (names.size() != values.size())
    throw nb::value_error("expected as many values as names");
  return getPointers(names);
}

} // namespace kas::python

#endif // KAS_PYTHON_EXTENSION_CALLS_H
