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

#include "kas-c/Kas.h"
#include "kas-c/Measure.h"
#include "kas-c/Search.h"
#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
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

namespace nb = nanobind;
using namespace nb::literals;

namespace {

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

const char *getPointer(const std::optional<std::string> &text) {
  return text ? text->c_str() : nullptr;
}

/// What the C interface takes; valid as long as `texts`.
std::vector<const char *> getPointers(const std::vector<std::string> &texts) {
  std::vector<const char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(text.c_str());
  return pointers;
}

/// The names of metrics.
std::vector<const char *> getPointers(const std::vector<std::string> &names,
                                      const std::vector<double> &values) {
  if (names.size() != values.size())
    throw nb::value_error("expected as many values as names");
  return getPointers(names);
}

using Array = nb::ndarray<nb::ro, nb::device::cpu>;
using OutputArray = nb::ndarray<nb::device::cpu>;

std::string shapeToString(const int64_t *shape, size_t rank) {
  std::string text = "(";
  for (size_t dim = 0; dim < rank; ++dim)
    text += (dim ? ", " : "") + std::to_string(shape[dim]);
  return text + (rank == 1 ? ",)" : ")");
}

/// Checks that `array` is dense f32 of the shape and gives its memory.
template <typename AnyArray>
float *getMemory(AnyArray &array, const std::string &name,
                 const std::vector<int64_t> &shape) {
  std::vector<int64_t> actual;
  for (size_t dim = 0; dim < array.ndim(); ++dim)
    actual.push_back(static_cast<int64_t>(array.shape(dim)));
  if (array.dtype() != nb::dtype<float>())
    throw nb::type_error(
        ("'" + name + "' must have elements of type float32").c_str());
  if (actual != shape)
    throw nb::value_error(("'" + name + "' must have the shape " +
                           shapeToString(shape.data(), shape.size()) +
                           ", got " +
                           shapeToString(actual.data(), actual.size()))
                              .c_str());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] != 1 && array.stride(dim) != stride)
      throw nb::value_error(("'" + name +
                             "' must be contiguous; make it so by "
                             "numpy.ascontiguousarray or .contiguous()")
                                .c_str());
    stride *= shape[dim];
  }
  return static_cast<float *>(
      const_cast<void *>(static_cast<const void *>(array.data())));
}

class Function {
public:
  explicit Function(KasFunction *function) : function(function) {}

  size_t getNumArguments() const {
    return kasFunctionGetNumArguments(function.get());
  }
  size_t getNumResults() const {
    return kasFunctionGetNumResults(function.get());
  }
  std::vector<std::pair<std::string, std::vector<int64_t>>>
  getTensors(size_t begin, size_t end) const {
    std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;
    for (size_t tensor = begin; tensor < end; ++tensor) {
      const int64_t *shape = kasFunctionGetShape(function.get(), tensor);
      tensors.emplace_back(
          kasFunctionGetName(function.get(), tensor),
          std::vector<int64_t>(
              shape, shape + kasFunctionGetRank(function.get(), tensor)));
    }
    return tensors;
  }
  double getCompileMilliseconds() const {
    return kasFunctionGetCompileMilliseconds(function.get());
  }

  void call(std::vector<Array> arguments, std::vector<OutputArray> results) {
    auto tensors = getTensors(0, getNumArguments() + getNumResults());
    checkCount("arguments", getNumArguments(), arguments.size());
    checkCount("results", getNumResults(), results.size());
    std::vector<float *> pointers;
    for (Array &array : arguments) {
      auto &[name, shape] = tensors[pointers.size()];
      pointers.push_back(getMemory(array, name, shape));
    }
    for (OutputArray &array : results) {
      auto &[name, shape] = tensors[pointers.size()];
      pointers.push_back(getMemory(array, name, shape));
    }
    nb::gil_scoped_release release;
    kasFunctionCall(function.get(), pointers.data());
  }

private:
  static void checkCount(const char *what, size_t expected, size_t actual) {
    if (expected != actual)
      throw nb::type_error(("expected " + std::to_string(expected) + " " +
                            what + ", got " + std::to_string(actual))
                               .c_str());
  }

  struct Destroy {
    void operator()(KasFunction *function) const {
      kasFunctionDestroy(function);
    }
  };
  std::unique_ptr<KasFunction, Destroy> function;
};

/// A program on tensors of any type: nothing says their shapes any more, so
/// that only their number is checked.
class Program {
public:
  explicit Program(KasProgram *program) : program(program) {}

  int64_t getNumTensors(const std::string &name) const {
    return kasProgramGetNumTensors(program.get(), name.c_str());
  }
  int64_t getNumPreparedElements(const std::string &name) const {
    return kasProgramGetNumPreparedElements(program.get(), name.c_str());
  }
  double call(const std::string &name, std::vector<Array> tensors,
              uint64_t runs, bool wallClock) {
    int64_t expected = getNumTensors(name);
    if (expected < 0)
      throw nb::key_error(("no function '" + name + "'").c_str());
    if (expected != static_cast<int64_t>(tensors.size()))
      throw nb::type_error(("expected " + std::to_string(expected) +
                            " tensors, got " + std::to_string(tensors.size()))
                               .c_str());
    std::vector<void *> pointers;
    for (Array &array : tensors)
      pointers.push_back(const_cast<void *>(array.data()));
    double milliseconds = 0;
    nb::gil_scoped_release release;
    kasProgramCall(program.get(), name.c_str(), pointers.data(), runs,
                   wallClock, &milliseconds);
    return milliseconds;
  }

private:
  struct Destroy {
    void operator()(KasProgram *program) const { kasProgramDestroy(program); }
  };
  std::unique_ptr<KasProgram, Destroy> program;
};

class Module {
public:
  Module(const std::string &text, const std::string &name) {
    Diagnostics diagnostics;
    {
      nb::gil_scoped_release release;
      module.reset(kasModuleParse(text.data(), text.size(), name.c_str(),
                                  diagnostics.sink()));
    }
    diagnostics.check(module != nullptr);
  }

  std::string print(bool generic) {
    Text text;
    nb::gil_scoped_release release;
    kasModulePrint(module.get(), generic, text.stream());
    return text.take();
  }
  void verify() {
    run([&](KasDiagnostics sink) {
      return kasModuleVerify(module.get(), sink);
    });
  }
  /// What the passes had to say.
  std::vector<Diagnostic> runPasses(const std::string &pipeline) {
    return run([&](KasDiagnostics sink) {
      return kasModuleRunPasses(module.get(), pipeline.c_str(), sink);
    });
  }
  std::string getSymbolText(const std::string &name) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasModuleGetText(module.get(), name.c_str(), stream, sink);
    });
  }
  std::string listSymbols() {
    Text text;
    nb::gil_scoped_release release;
    kasModuleListSymbols(module.get(), text.stream());
    return text.take();
  }

  std::string describeSpace(const std::optional<std::string> &space) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasSpaceDescribe(module.get(), getPointer(space), stream, sink);
    });
  }
  std::string describe(const std::string &name) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorDescribe(module.get(), name.c_str(), stream, sink);
    });
  }
  std::string getShapes(const std::string &name, const std::string &binding) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorGetShapes(module.get(), name.c_str(), binding.c_str(),
                                  stream, sink);
    });
  }
  std::tuple<int64_t, int64_t, int64_t, int64_t>
  getCost(const std::string &name, const std::string &binding) {
    KasCost cost = {};
    run([&](KasDiagnostics sink) {
      return kasOperatorGetCost(module.get(), name.c_str(), binding.c_str(),
                                &cost, sink);
    });
    return {cost.macs, cost.flops, cost.parameters, cost.bytes};
  }
  double getFanIn(const std::string &name, const std::string &binding) {
    double fanIn = 0;
    run([&](KasDiagnostics sink) {
      return kasOperatorGetFanIn(module.get(), name.c_str(), binding.c_str(),
                                 &fanIn, sink);
    });
    return fanIn;
  }
  std::string getText(const std::string &name, KasOperatorText kind,
                      const std::optional<std::string> &binding) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasOperatorGetText(module.get(), name.c_str(), kind,
                                getPointer(binding), stream, sink);
    });
  }
  /// The caller has checked the shapes.
  void evaluate(
      const std::string &name, const std::string &binding,
      std::vector<nb::ndarray<float, nb::c_contig, nb::device::cpu>> tensors) {
    std::vector<float *> pointers;
    for (auto &tensor : tensors)
      pointers.push_back(tensor.data());
    run([&](KasDiagnostics sink) {
      return kasOperatorEvaluate(module.get(), name.c_str(), binding.c_str(),
                                 pointers.data(), sink);
    });
  }
  Function *compile(const std::string &name, const std::string &binding,
                    unsigned threads, unsigned optLevel) {
    KasFunction *function = nullptr;
    run([&](KasDiagnostics sink) {
      function = kasOperatorCompile(module.get(), name.c_str(), binding.c_str(),
                                    {threads, optLevel}, sink);
      return function != nullptr;
    });
    return new Function(function);
  }
  Function *compileGradient(const std::string &name, const std::string &binding,
                            size_t tensor, KasGradientRoad road,
                            unsigned threads, unsigned optLevel) {
    KasFunction *function = nullptr;
    run([&](KasDiagnostics sink) {
      function = kasOperatorCompileGradient(module.get(), name.c_str(),
                                            binding.c_str(), tensor, road,
                                            {threads, optLevel}, sink);
      return function != nullptr;
    });
    return new Function(function);
  }
  std::string describeKernel(const std::string &name) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasKernelDescribe(module.get(), name.c_str(), stream, sink);
    });
  }
  std::string getKernelShapes(const std::string &name,
                              const std::string &binding, int64_t batch) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasKernelGetShapes(module.get(), name.c_str(), binding.c_str(),
                                batch, stream, sink);
    });
  }
  std::string kernelToPyTorch(const std::string &name,
                              const std::string &binding) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasKernelToPyTorch(module.get(), name.c_str(), binding.c_str(),
                                stream, sink);
    });
  }
  /// The caller has checked the shapes.
  void evaluateKernel(
      const std::string &name, const std::string &binding,
      std::vector<nb::ndarray<float, nb::c_contig, nb::device::cpu>> tensors) {
    std::vector<float *> pointers;
    for (auto &tensor : tensors)
      pointers.push_back(tensor.data());
    run([&](KasDiagnostics sink) {
      return kasKernelEvaluate(module.get(), name.c_str(), binding.c_str(),
                               pointers.data(), sink);
    });
  }
  Function *compileKernel(const std::string &name, const std::string &binding,
                          int64_t batch, bool gradient, unsigned threads,
                          unsigned optLevel) {
    KasFunction *function = nullptr;
    run([&](KasDiagnostics sink) {
      auto compile = gradient ? kasKernelCompileGradient : kasKernelCompile;
      function = compile(module.get(), name.c_str(), binding.c_str(), batch,
                         {threads, optLevel}, sink);
      return function != nullptr;
    });
    return new Function(function);
  }
  Function *compileFunction(const std::string &name, unsigned threads,
                            unsigned optLevel) {
    KasFunction *function = nullptr;
    run([&](KasDiagnostics sink) {
      function = kasModuleCompile(module.get(), name.c_str(),
                                  {threads, optLevel}, sink);
      return function != nullptr;
    });
    return new Function(function);
  }

  Program *load(unsigned optLevel) {
    KasProgram *program = nullptr;
    run([&](KasDiagnostics sink) {
      program = kasModuleLoad(module.get(), optLevel, sink);
      return program != nullptr;
    });
    return new Program(program);
  }
  std::string tune(const std::string &name, const std::string &database,
                   const std::string &network, int64_t trials, int64_t runs,
                   uint64_t seed, unsigned threads) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasModuleTune(
          module.get(), name.c_str(),
          {database.c_str(), network.c_str(), trials, runs, seed, threads},
          stream, sink);
    });
  }

private:
  friend class Searcher;

  struct Destroy {
    void operator()(KasModule *module) const { kasModuleDestroy(module); }
  };
  std::unique_ptr<KasModule, Destroy> module;
};

class Searcher {
public:
  Searcher(Module &module, const std::optional<std::string> &space,
           const std::string &algorithm, uint64_t seed,
           const std::vector<std::string> &parameters,
           const std::string &objective,
           const std::optional<std::string> &database,
           const std::vector<std::string> &settings) {
    std::vector<const char *> parameterPointers = getPointers(parameters);
    std::vector<const char *> settingPointers = getPointers(settings);
    KasSearchOptions options = {
        algorithm.c_str(),        seed,
        parameterPointers.data(), parameterPointers.size(),
        objective.c_str(),        getPointer(database),
        settingPointers.data(),   settingPointers.size()};
    run([&](KasDiagnostics sink) {
      searcher.reset(kasSearcherCreate(module.module.get(), getPointer(space),
                                       options, sink));
      return searcher != nullptr;
    });
  }

  std::string ask(size_t count) {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasSearcherAsk(searcher.get(), count, stream, sink);
    });
  }
  void tellMetrics(uint64_t id, const std::vector<std::string> &names,
                   const std::vector<double> &values) {
    std::vector<const char *> pointers = getPointers(names, values);
    run([&](KasDiagnostics sink) {
      return kasSearcherTellMetrics(searcher.get(), id, pointers.data(),
                                    values.data(), values.size(), sink);
    });
  }
  void tellFailure(uint64_t id, const std::string &reason) {
    run([&](KasDiagnostics sink) {
      return kasSearcherTellFailure(searcher.get(), id, reason.c_str(), sink);
    });
  }
  std::string getReplayed() {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasSearcherGetReplayed(searcher.get(), stream, sink);
    });
  }
  void recordFinal(uint64_t id, const std::vector<std::string> &names,
                   const std::vector<double> &values,
                   const std::optional<std::string> &failure, double seconds) {
    std::vector<const char *> pointers = getPointers(names, values);
    run([&](KasDiagnostics sink) {
      return kasSearcherRecordFinal(searcher.get(), id, pointers.data(),
                                    values.data(), values.size(),
                                    getPointer(failure), seconds, sink);
    });
  }
  std::string getFinals() {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasSearcherGetFinals(searcher.get(), stream, sink);
    });
  }
  void recordTraining(
      int64_t candidate, uint64_t seed,
      const std::vector<std::tuple<uint64_t, std::string, double>> &points) {
    std::vector<uint64_t> epochs;
    std::vector<const char *> names;
    std::vector<double> values;
    for (const auto &[epoch, name, value] : points) {
      epochs.push_back(epoch);
      names.push_back(name.c_str());
      values.push_back(value);
    }
    run([&](KasDiagnostics sink) {
      return kasSearcherRecordTraining(searcher.get(), candidate, seed,
                                       epochs.data(), names.data(),
                                       values.data(), points.size(), sink);
    });
  }
  std::string getTraining() {
    return read([&](KasStream stream, KasDiagnostics sink) {
      return kasSearcherGetTraining(searcher.get(), stream, sink);
    });
  }
  bool isExhausted() {
    nb::gil_scoped_release release;
    return kasSearcherIsExhausted(searcher.get());
  }
  void stop() { kasSearcherStop(searcher.get()); }
  std::string getStatistics() {
    Text text;
    nb::gil_scoped_release release;
    kasSearcherGetStatistics(searcher.get(), text.stream());
    return text.take();
  }
  void close() {
    run([&](KasDiagnostics sink) {
      return kasSearcherClose(searcher.get(), sink);
    });
  }

private:
  struct Destroy {
    void operator()(KasSearcher *searcher) const {
      kasSearcherDestroy(searcher);
    }
  };
  std::unique_ptr<KasSearcher, Destroy> searcher;
};

} // namespace

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
  nb::enum_<KasGradientRoad>(m, "GradientRoad")
      .value("AUTO", KasGradientRoadAuto)
      .value("STRUCTURED", KasGradientRoadStructured)
      .value("LOOPS", KasGradientRoadLoops);
  nb::enum_<KasOperatorText>(m, "OperatorText")
      .value("MLIR", KasOperatorTextMLIR)
      .value("FORMULA", KasOperatorTextFormula)
      .value("GRAPH", KasOperatorTextGraph)
      .value("LOOP_NEST", KasOperatorTextLoopNest)
      .value("PYTORCH", KasOperatorTextPyTorch)
      .value("CANONICAL", KasOperatorTextCanonical);
  m.def("list_names", &listNames, "library"_a);
  m.def("get_entry", &getEntry, "library"_a, "index"_a,
        "The title, the formula, the source and the file of an entry.");

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
      .def_prop_ro("compile_milliseconds", &Function::getCompileMilliseconds)
      .def("call", &Function::call, "arguments"_a, "results"_a);

  nb::class_<Module>(m, "Module")
      .def(nb::init<const std::string &, const std::string &>(), "text"_a,
           "name"_a)
      .def("print", &Module::print, "generic"_a)
      .def("verify", &Module::verify)
      .def("run_passes", &Module::runPasses, "pipeline"_a)
      .def("get_symbol_text", &Module::getSymbolText, "name"_a)
      .def("list_symbols", &Module::listSymbols)
      .def("describe_space", &Module::describeSpace, "name"_a.none())
      .def("describe", &Module::describe, "name"_a)
      .def("get_shapes", &Module::getShapes, "name"_a, "binding"_a)
      .def("get_cost", &Module::getCost, "name"_a, "binding"_a)
      .def("get_fan_in", &Module::getFanIn, "name"_a, "binding"_a)
      .def("get_text", &Module::getText, "name"_a, "kind"_a, "binding"_a.none())
      .def("evaluate", &Module::evaluate, "name"_a, "binding"_a, "tensors"_a)
      .def("compile", &Module::compile, "name"_a, "binding"_a, "threads"_a,
           "opt_level"_a)
      .def("compile_gradient", &Module::compileGradient, "name"_a, "binding"_a,
           "tensor"_a, "road"_a, "threads"_a, "opt_level"_a)
      .def("describe_kernel", &Module::describeKernel, "name"_a)
      .def("get_kernel_shapes", &Module::getKernelShapes, "name"_a, "binding"_a,
           "batch"_a)
      .def("kernel_to_pytorch", &Module::kernelToPyTorch, "name"_a, "binding"_a)
      .def("evaluate_kernel", &Module::evaluateKernel, "name"_a, "binding"_a,
           "tensors"_a)
      .def("compile_kernel", &Module::compileKernel, "name"_a, "binding"_a,
           "batch"_a, "gradient"_a, "threads"_a, "opt_level"_a)
      .def("compile_function", &Module::compileFunction, "name"_a, "threads"_a,
           "opt_level"_a)
      .def("load", &Module::load, "opt_level"_a)
      .def("tune", &Module::tune, "name"_a, "database"_a, "network"_a,
           "trials"_a, "runs"_a, "seed"_a, "threads"_a);

  m.def(
      "open_tuning_database",
      [](const std::string &path) {
        return read([&](KasStream stream, KasDiagnostics sink) {
          return kasTuningDatabaseOpen(path.c_str(), stream, sink);
        });
      },
      "path"_a);
  nb::class_<Program>(m, "Program")
      .def("get_num_tensors", &Program::getNumTensors, "name"_a)
      .def("get_num_prepared_elements", &Program::getNumPreparedElements,
           "name"_a)
      .def("call", &Program::call, "name"_a, "tensors"_a, "runs"_a,
           "wall_clock"_a);

  nb::class_<Searcher>(m, "Searcher")
      .def(nb::init<Module &, const std::optional<std::string> &,
                    const std::string &, uint64_t,
                    const std::vector<std::string> &, const std::string &,
                    const std::optional<std::string> &,
                    const std::vector<std::string> &>(),
           "module"_a, "space"_a.none(), "algorithm"_a, "seed"_a,
           "parameters"_a, "objective"_a, "database"_a.none(), "settings"_a)
      .def("ask", &Searcher::ask, "count"_a)
      .def("tell_metrics", &Searcher::tellMetrics, "id"_a, "names"_a,
           "values"_a)
      .def("tell_failure", &Searcher::tellFailure, "id"_a, "reason"_a)
      .def("get_replayed", &Searcher::getReplayed)
      .def("record_final", &Searcher::recordFinal, "id"_a, "names"_a,
           "values"_a, "failure"_a.none(), "seconds"_a)
      .def("get_finals", &Searcher::getFinals)
      .def("record_training", &Searcher::recordTraining, "candidate"_a,
           "seed"_a, "points"_a)
      .def("get_training", &Searcher::getTraining)
      .def("is_exhausted", &Searcher::isExhausted)
      .def("stop", &Searcher::stop)
      .def("get_statistics", &Searcher::getStatistics)
      .def("close", &Searcher::close);
}
