//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to plans of trainings. The plan itself is in Search/Core:
// here are its options, and callbacks in place of lists.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Core/TrainingPlan.h"
#include "kas-c/Search.h"
#include <cmath>

using namespace kas::search;

struct KasTrainingPlan {
  TrainingPlan plan;
};

static bool report(llvm::Error error, KasDiagnostics diagnostics) {
  if (!error)
    return true;
  std::string message = llvm::toString(std::move(error));
  diagnostics.report(KasSeverityError, "", message.c_str(),
                     diagnostics.userData);
  return false;
}

KasTrainingPlan *kasTrainingPlanCreate(KasTrainingPlanOptions options,
                                       KasDiagnostics diagnostics) {
  HalvingPolicy policy{options.size,
                       {options.rungs, options.rungs + options.numRungs},
                       options.keep};
  llvm::Expected<TrainingPlan> plan = TrainingPlan::create(
      {std::move(policy), options.epochs, options.workers, options.finalCount,
       options.finalSeeds, options.candidates, options.trainings});
  if (plan)
    return new KasTrainingPlan{std::move(*plan)};
  report(plan.takeError(), diagnostics);
  return nullptr;
}

void kasTrainingPlanDestroy(KasTrainingPlan *plan) { delete plan; }

void kasTrainingPlanLearn(KasTrainingPlan *plan, int64_t epochs,
                          double seconds) {
  plan->plan.learn(epochs, seconds);
}

bool kasTrainingPlanHasLearned(const KasTrainingPlan *plan) {
  return plan->plan.hasLearned();
}

double kasTrainingPlanPredict(const KasTrainingPlan *plan, int64_t epochs) {
  return plan->plan.predict(epochs);
}

double kasTrainingPlanPredictFinal(const KasTrainingPlan *plan, size_t count) {
  return plan->plan.predictFinal(count);
}

double kasTrainingPlanPredictBrackets(const KasTrainingPlan *plan,
                                      size_t size) {
  return plan->plan.predictBrackets(size);
}

size_t kasTrainingPlanCountBaselineSeeds(const KasTrainingPlan *plan,
                                         size_t baselines, double secondsLeft) {
  return plan->plan.countBaselineSeeds(baselines, secondsLeft);
}

size_t kasTrainingPlanGetRoom(const KasTrainingPlan *plan, double secondsLeft,
                              size_t known, size_t whole, size_t others) {
  return plan->plan.getRoom({secondsLeft, known, whole}, others);
}

void kasTrainingPlanOpen(KasTrainingPlan *plan, const uint64_t *ids,
                         size_t count, const KasKnownTraining *known,
                         size_t numKnown) {
  std::map<uint64_t, Bracket::Known> others;
  for (const KasKnownTraining &one : llvm::ArrayRef(known, numKnown))
    others[one.id] = {one.epochs, one.score};
  plan->plan.open({ids, count}, std::move(others));
}

bool kasTrainingPlanTake(KasTrainingPlan *plan, uint64_t *id, int64_t *epochs) {
  auto job = plan->plan.take();
  if (job)
    std::tie(*id, *epochs) = *job;
  return job.has_value();
}

static bool listOut(llvm::Expected<std::vector<uint64_t>> ids,
                    void (*out)(uint64_t, void *), void *userData,
                    KasDiagnostics diagnostics) {
  if (!ids)
    return report(ids.takeError(), diagnostics);
  for (uint64_t id : *ids)
    out(id, userData);
  return true;
}

bool kasTrainingPlanFinish(KasTrainingPlan *plan, uint64_t id, int64_t epochs,
                           double score, double seconds,
                           void (*out)(uint64_t id, void *userData),
                           void *userData, KasDiagnostics diagnostics) {
  // NaN has no order: such a score is below all others.
  if (std::isnan(score))
    score = -std::numeric_limits<double>::infinity();
  return listOut(plan->plan.finish(id, epochs, score, seconds), out, userData,
                 diagnostics);
}

bool kasTrainingPlanFail(KasTrainingPlan *plan, uint64_t id,
                         void (*out)(uint64_t id, void *userData),
                         void *userData, KasDiagnostics diagnostics) {
  return listOut(plan->plan.fail(id), out, userData, diagnostics);
}

double kasTrainingPlanGetEffort(const KasTrainingPlan *plan) {
  return plan->plan.getEffort();
}
