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

static Function *loadFunction(const std::string &path) {
  KasFunction *function = nullptr;
  run([&](KasDiagnostics sink) {
    function = kasFunctionLoad(path.c_str(), sink);
    return function != nullptr;
  });
  return new Function(function);
}

/// The program that was kept under a key, and its note; none where there is no
/// such.
static std::optional<std::pair<std::unique_ptr<Program>, std::string>>
findProgram(const std::string &key) {
  Text note;
  KasProgram *program = nullptr;
  {
    nb::gil_scoped_release release;
    program = kasProgramFind(key.c_str(), note.stream());
  }
  if (!program)
    return std::nullopt;
  return std::pair(std::make_unique<Program>(program), note.take());
}

/// The directory, empty where there is none, and how many bytes it may have.
static std::pair<std::string, uint64_t> getCacheSettings() {
  auto settings = execution::CacheSettings::getOfUser();
  if (!settings)
    throw nb::value_error(llvm::toString(settings.takeError()).c_str());
  return {settings->directory, settings->maxBytes};
}

/// Bytes of the caller's, which a check sum protects.
static std::optional<nb::bytes> loadCached(const std::string &key) {
  auto cache = execution::ObjectCache::openOfUser();
  if (!cache)
    throw nb::value_error(llvm::toString(cache.takeError()).c_str());
  auto content = (*cache)->load(key);
  if (!content)
    return std::nullopt;
  return nb::bytes(content->getBufferStart(), content->getBufferSize());
}

static void storeCached(const std::string &key, const nb::bytes &content) {
  auto cache = execution::ObjectCache::openOfUser();
  if (!cache)
    throw nb::value_error(llvm::toString(cache.takeError()).c_str());
  (*cache)->store(key, llvm::StringRef(content.c_str(), content.size()));
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
      .def("save", &Function::save, "path"_a, "weights"_a)
      .def("bind", &Function::bind, "arguments"_a, "results"_a,
           nb::keep_alive<0, 1>());

  nb::class_<BoundCall>(m, "BoundCall")
      .def("run", &BoundCall::run)
      .def("prepack", &BoundCall::prepack);

  m.def("load_function", &loadFunction, "path"_a);
  m.def("find_program", &findProgram, "key"_a);
  m.def("get_cache_settings", &getCacheSettings);
  m.def("load_cached", &loadCached, "key"_a);
  m.def("store_cached", &storeCached, "key"_a, "content"_a);
  m.def("get_generator_digest",
        [] { return execution::getGeneratorDigest().str(); });

  m.def("profile", &profile, "module"_a, "name"_a, "binding"_a, "arguments"_a,
        "threads"_a, "opt_level"_a, "runs"_a, "seed"_a);

  nb::class_<Program>(m, "Program")
      .def("get_num_tensors", &Program::getNumTensors, "name"_a)
      .def("get_num_prepacked_elements", &Program::getNumPrepackedElements,
           "name"_a)
      .def("call", &Program::call, "name"_a, "tensors"_a, "runs"_a)
      .def("call_at", &Program::callAt, "name"_a, "addresses"_a);

  nb::class_<WriteWatch>(m, "WriteWatch")
      .def(nb::new_(&watchMemory), "ranges"_a)
      .def("has_changed", &WriteWatch::hasChanged,
           nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("compared_bytes", &WriteWatch::getNumComparedBytes);
}
