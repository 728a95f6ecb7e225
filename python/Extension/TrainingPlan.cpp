//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans of trainings, for Python.
//
//===----------------------------------------------------------------------===//

#include "Calls.h"
#include "Searcher.h"
#include "kas-c/Search.h"
#include <limits>
#include <memory>

using namespace kas::python;
namespace nb = nanobind;
using namespace nb::literals;

namespace {

class TrainingPlan {
public:
  TrainingPlan(size_t size, const std::vector<int64_t> &rungs, double keep,
               int64_t epochs, size_t workers, size_t finalCount,
               size_t finalSeeds, std::optional<size_t> candidates,
               std::optional<double> trainings) {
    KasTrainingPlanOptions options = {
        size,
        rungs.data(),
        rungs.size(),
        keep,
        epochs,
        workers,
        finalCount,
        finalSeeds,
        candidates.value_or(std::numeric_limits<size_t>::max()),
        trainings.value_or(std::numeric_limits<double>::infinity())};
    run([&](KasDiagnostics sink) {
      plan.reset(kasTrainingPlanCreate(options, sink));
      return plan != nullptr;
    });
  }

  void learn(int64_t epochs, double seconds) {
    kasTrainingPlanLearn(plan.get(), epochs, seconds);
  }
  bool hasLearned() { return kasTrainingPlanHasLearned(plan.get()); }
  double predict(int64_t epochs) {
    return kasTrainingPlanPredict(plan.get(), epochs);
  }
  double predictFinal(size_t count) {
    return kasTrainingPlanPredictFinal(plan.get(), count);
  }
  double predictBrackets(size_t size) {
    return kasTrainingPlanPredictBrackets(plan.get(), size);
  }
  size_t countBaselineSeeds(size_t baselines, double secondsLeft) {
    return kasTrainingPlanCountBaselineSeeds(plan.get(), baselines,
                                             secondsLeft);
  }
  size_t getRoom(double secondsLeft, size_t known, size_t whole,
                 size_t others) {
    return kasTrainingPlanGetRoom(plan.get(), secondsLeft, known, whole,
                                  others);
  }
  void
  open(const std::vector<uint64_t> &ids,
       const std::vector<std::tuple<uint64_t, int64_t, double>> &knownOnes) {
    std::vector<KasKnownTraining> known;
    for (auto [id, epochs, score] : knownOnes)
      known.push_back({id, epochs, score});
    kasTrainingPlanOpen(plan.get(), ids.data(), ids.size(), known.data(),
                        known.size());
  }
  std::optional<std::pair<uint64_t, int64_t>> take() {
    std::pair<uint64_t, int64_t> job;
    if (!kasTrainingPlanTake(plan.get(), &job.first, &job.second))
      return std::nullopt;
    return job;
  }
  std::vector<uint64_t> finish(uint64_t id, int64_t epochs, double score,
                               double seconds) {
    std::vector<uint64_t> out;
    run([&](KasDiagnostics sink) {
      return kasTrainingPlanFinish(plan.get(), id, epochs, score, seconds,
                                   &append, &out, sink);
    });
    return out;
  }
  std::vector<uint64_t> fail(uint64_t id) {
    std::vector<uint64_t> out;
    run([&](KasDiagnostics sink) {
      return kasTrainingPlanFail(plan.get(), id, &append, &out, sink);
    });
    return out;
  }
  double getEffort() { return kasTrainingPlanGetEffort(plan.get()); }

private:
  static void append(uint64_t id, void *ids) {
    static_cast<std::vector<uint64_t> *>(ids)->push_back(id);
  }

  struct Destroy {
    void operator()(KasTrainingPlan *plan) const {
      kasTrainingPlanDestroy(plan);
    }
  };
  std::unique_ptr<KasTrainingPlan, Destroy> plan;
};

} // namespace

void kas::python::addTrainingPlan(nb::module_ &m) {
  nb::class_<TrainingPlan>(m, "TrainingPlan")
      .def(nb::init<size_t, const std::vector<int64_t> &, double, int64_t,
                    size_t, size_t, size_t, std::optional<size_t>,
                    std::optional<double>>(),
           "size"_a, "rungs"_a, "keep"_a, "epochs"_a, "workers"_a = 1,
           "final_count"_a = 0, "final_seeds"_a = 1,
           "candidates"_a = nb::none(), "trainings"_a = nb::none())
      .def("learn", &TrainingPlan::learn, "epochs"_a, "seconds"_a)
      .def("has_learned", &TrainingPlan::hasLearned)
      .def("predict", &TrainingPlan::predict, "epochs"_a)
      .def("predict_final", &TrainingPlan::predictFinal, "count"_a)
      .def("predict_brackets", &TrainingPlan::predictBrackets, "size"_a)
      .def("count_baseline_seeds", &TrainingPlan::countBaselineSeeds,
           "baselines"_a, "seconds_left"_a)
      .def("get_room", &TrainingPlan::getRoom, "seconds_left"_a, "known"_a,
           "whole"_a, "others"_a)
      .def("open", &TrainingPlan::open, "ids"_a, "known"_a)
      .def("take", &TrainingPlan::take)
      .def("finish", &TrainingPlan::finish, "id"_a, "epochs"_a, "score"_a,
           "seconds"_a)
      .def("fail", &TrainingPlan::fail, "id"_a)
      .def("get_effort", &TrainingPlan::getEffort);
}
