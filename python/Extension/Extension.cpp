//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Python extension kas._kas: the C interface as classes. What is convenient
// is written in Python around it.
//
//===----------------------------------------------------------------------===//

#include "Dataset.h"
#include "Device.h"
#include "Functions.h"
#include "Module.h"
#include "Searcher.h"

using namespace kas::python;
namespace nb = nanobind;
using namespace nb::literals;

static std::vector<std::string> listNames(KasLibrary library) {
  std::vector<std::string> names;
  for (size_t index = 0; index < kasLibraryGetSize(library); ++index) {
    Text text;
    kasLibraryGetText(library, index, KasLibraryTextName, text.stream());
    names.push_back(text.take());
  }
  return names;
}

/// The title, the formula, the source and the file.
static std::vector<std::string> getEntry(KasLibrary library, size_t index) {
  if (index >= kasLibraryGetSize(library))
    throw nb::index_error("no such entry");
  std::vector<std::string> texts;
  for (KasLibraryText kind : {KasLibraryTextTitle, KasLibraryTextFormula,
                              KasLibraryTextSource, KasLibraryTextFile}) {
    Text text;
    kasLibraryGetText(library, index, kind, text.stream());
    texts.push_back(text.take());
  }
  return texts;
}

NB_MODULE(_kas, m) {
  // Caches of modules may live until the interpreter ends.
  nb::set_leak_warnings(false);
  m.doc() = "The C interface of kas as classes.";
  m.attr("__version__") = kasGetVersion();

  // The Python file kas/_errors.py puts the class in its place.
  static nb::object errorClass;
  m.def(
      "set_error_class", [](nb::object type) { errorClass = type; }, "type"_a,
      "The exception to raise, called with a list of diagnostics.");
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function([] { errorClass.reset(); }));
  nb::register_exception_translator(
      [](const std::exception_ptr &pointer, void *) {
        try {
          std::rethrow_exception(pointer);
        } catch (const Failure &failure) {
          if (!errorClass.is_valid()) {
            PyErr_SetString(PyExc_RuntimeError, "kas is shutting down");
            return;
          }
          nb::object error = errorClass(nb::cast(failure.diagnostics));
          PyErr_SetObject(errorClass.ptr(), error.ptr());
        }
      });

  nb::enum_<KasLibrary>(m, "Library")
      .value("OPERATORS", KasLibraryOperators)
      .value("KERNELS", KasLibraryKernels);
  m.def("list_names", &listNames, "library"_a);
  m.def("get_entry", &getEntry, "library"_a, "index"_a,
        "The title, the formula, the source and the file of an entry.");

  addDataset(m);
  addFunctions(m);
  addModule(m);
  addDevice(m);
  addSearcher(m);
  addTrainingPlan(m);
}
