//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "Module.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Support/WriteWatch.h"
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

using namespace kas;
using namespace kas::python;
namespace nb = nanobind;
using namespace nb::literals;

/// The first arguments are given; the C interface checks their shapes and
/// types.
static std::string profile(Module &module, const std::string &name,
                           const std::optional<std::string> &binding,
                           std::vector<Array> arguments, unsigned threads,
                           unsigned optLevel, unsigned runs, uint64_t seed) {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> types;
  std::vector<KasArray> arrays;
  types.reserve(arguments.size());
  for (Array &array : arguments) {
    std::vector<int64_t> &shape = shapes.emplace_back();
    for (size_t dim = 0; dim < array.ndim(); ++dim)
      shape.push_back(static_cast<int64_t>(array.shape(dim)));
    std::string label = "argument " + std::to_string(arrays.size());
    types.push_back(getTypeName(array.dtype()));
    float *data = getMemory(array, label, shape, types.back());
    arrays.push_back({data, shape.size(), shape.data(), types.back().c_str()});
  }
  return read([&](KasStream stream, KasDiagnostics sink) {
    return kasModuleProfile(module.get(), name.c_str(), getPointer(binding),
                            arrays.data(), arrays.size(),
                            {{threads, optLevel}, runs, seed}, stream, sink);
  });
}

/// Of addresses and sizes in bytes.
static std::unique_ptr<WriteWatch>
watchMemory(const std::vector<std::pair<size_t, size_t>> &ranges) {
  std::vector<WriteWatch::Range> memory;
  for (auto [address, size] : ranges)
    memory.emplace_back(reinterpret_cast<const void *>(address), size);
  return std::make_unique<WriteWatch>(memory);
}

void kas::python::addFunctions(nb::module_ &m) {
  nb::class_<Function>(m, "Function")
      .def_prop_ro("arguments",
                   [](const Function &self) {
                     return self.getTensors(0, self.getNumArguments());
                   })
      .def_prop_ro("results",
                   [](const Function &self) {
                     size_t begin = self.getNumArguments();
                     return self.getTensors(begin,
                                            begin + self.getNumResults());
                   })
      .def_prop_ro("types", &Function::getTypes)
      .def_prop_ro("any_batch", &Function::hasAnyBatch)
      .def_prop_ro("compile_milliseconds", &Function::getCompileMilliseconds)
      .def("bind", &Function::bind, "arguments"_a, "results"_a,
           nb::keep_alive<0, 1>());

  nb::class_<BoundCall>(m, "BoundCall")
      .def("run", &BoundCall::run)
      .def("prepack", &BoundCall::prepack);

  m.def("profile", &profile, "module"_a, "name"_a, "binding"_a, "arguments"_a,
        "threads"_a, "opt_level"_a, "runs"_a, "seed"_a);

  nb::class_<Program>(m, "Program")
      .def("get_num_tensors", &Program::getNumTensors, "name"_a)
      .def("get_num_prepacked_elements", &Program::getNumPrepackedElements,
           "name"_a)
      .def("call", &Program::call, "name"_a, "tensors"_a, "runs"_a,
           "wall_clock"_a)
      .def("call_at", &Program::callAt, "name"_a, "addresses"_a);

  nb::class_<WriteWatch>(m, "WriteWatch")
      .def(nb::new_(&watchMemory), "ranges"_a)
      .def("has_changed", &WriteWatch::hasChanged,
           nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("compared_bytes", &WriteWatch::getNumComparedBytes);
}
