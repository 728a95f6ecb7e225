//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Searcher.h"
#include "Module.h"
#include "kas-c/Search.h"
#include <chrono>
#include <future>

using namespace kas::python;
namespace nb = nanobind;
using namespace nb::literals;

namespace {

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
      searcher.reset(
          kasSearcherCreate(module.get(), getPointer(space), options, sink));
      return searcher != nullptr;
    });
  }

  /// Handlers of signals run in the main thread of the interpreter: there the
  /// call is another thread's, and what a handler raises, as that of Ctrl-C
  /// does, stops the searcher.
  std::string ask(size_t count, bool isMainThread) {
    if (!isMainThread)
      return read([&](KasStream stream, KasDiagnostics sink) {
        return kasSearcherAsk(searcher.get(), count, stream, sink);
      });
    Text text;
    Diagnostics diagnostics;
    std::future<bool> answer = std::async(std::launch::async, [&] {
      return kasSearcherAsk(searcher.get(), count, text.stream(),
                            diagnostics.sink());
    });
    while (!waitFor(answer))
      if (PyErr_CheckSignals() != 0) {
        nb::python_error error;
        stop();
        while (!waitFor(answer))
          ;
        throw error;
      }
    diagnostics.check(answer.get());
    return text.take();
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
  int64_t addBaseline(const std::string &name, const std::string &text) {
    int64_t number = 0;
    run([&](KasDiagnostics sink) {
      return kasSearcherAddBaseline(searcher.get(), name.c_str(), text.c_str(),
                                    &number, sink);
    });
    return number;
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
  /// Whether the answer came within a moment, in which others may have the lock
  /// of the interpreter.
  static bool waitFor(const std::future<bool> &answer) {
    nb::gil_scoped_release release;
    return answer.wait_for(std::chrono::milliseconds(50)) ==
           std::future_status::ready;
  }

  struct Destroy {
    void operator()(KasSearcher *searcher) const {
      kasSearcherDestroy(searcher);
    }
  };
  std::unique_ptr<KasSearcher, Destroy> searcher;
};

} // namespace

void kas::python::addSearcher(nb::module_ &m) {
  m.def(
      "describe_objective",
      [](const std::string &text) {
        return read([&](KasStream stream, KasDiagnostics sink) {
          return kasObjectiveDescribe(text.c_str(), stream, sink);
        });
      },
      "text"_a);
  nb::class_<Searcher>(m, "Searcher")
      .def(nb::init<Module &, const std::optional<std::string> &,
                    const std::string &, uint64_t,
                    const std::vector<std::string> &, const std::string &,
                    const std::optional<std::string> &,
                    const std::vector<std::string> &>(),
           "module"_a, "space"_a.none(), "algorithm"_a, "seed"_a,
           "parameters"_a, "objective"_a, "database"_a.none(), "settings"_a)
      .def("ask", &Searcher::ask, "count"_a, "is_main_thread"_a)
      .def("tell_metrics", &Searcher::tellMetrics, "id"_a, "names"_a,
           "values"_a)
      .def("tell_failure", &Searcher::tellFailure, "id"_a, "reason"_a)
      .def("get_replayed", &Searcher::getReplayed)
      .def("record_final", &Searcher::recordFinal, "id"_a, "names"_a,
           "values"_a, "failure"_a.none(), "seconds"_a)
      .def("get_finals", &Searcher::getFinals)
      .def("add_baseline", &Searcher::addBaseline, "name"_a, "text"_a)
      .def("record_training", &Searcher::recordTraining, "candidate"_a,
           "seed"_a, "points"_a)
      .def("get_training", &Searcher::getTraining)
      .def("is_exhausted", &Searcher::isExhausted)
      .def("stop", &Searcher::stop)
      .def("get_statistics", &Searcher::getStatistics)
      .def("close", &Searcher::close);
}
