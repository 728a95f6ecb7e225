//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface of the search: spaces, searchers that propose operators (ask)
// and learn what became of them (tell), and plans of what is trained.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_C_SEARCH_H
#define KAS_C_SEARCH_H

#include "kas-c/Kas.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KasSearcher KasSearcher;

/// Writes a JSON object: `name`, `primaries`, `coefficients`, `output`, `input`
/// (arrays of sizes), `unordered_output`, `unordered_input` (arrays of
/// booleans), `bindings` (an array of objects such as `{"N": 1}`),
/// `multiplicities`, `budget` (an object of the bounds `min_flops`, `flops`,
/// `params`, those that are there, in numbers), `baseline` (an object of the
/// `flops` and `params` of the layers, where given) and `named_operator` (of
/// the library, which computes what the layers compute; may be empty). `space`
/// may be null: the only one of the module.
bool kasSpaceDescribe(KasModule *module, const char *space, KasStream json,
                      KasDiagnostics diagnostics);

/// Sets a limit of a space to an attribute, in MLIR's text, or takes it away
/// for null. Whether the space is valid then, `kasModuleVerify` says.
bool kasSpaceSetLimit(KasModule *module, const char *space, const char *name,
                      const char *value, KasDiagnostics diagnostics);

/// Writes a JSON object about the operator `name` of the module `operators` and
/// the solutions of a space (see kas/Search/Operators/Membership.h): `key`,
/// that of the candidate that is the same operator if there is one, or null,
/// and `reasons`, an array of the bounds that the operator is not within.
bool kasSpaceFindMember(KasModule *module, const char *space,
                        KasModule *operators, const char *name, KasStream json,
                        KasDiagnostics diagnostics);

typedef struct KasSearchOptions {
  /// `random`, `uniform`, `exhaustive`, `evolution`, `mcts`, `surrogate`.
  const char *algorithm;
  uint64_t seed;
  /// Constants of the algorithm, each `name=value`.
  const char *const *parameters;
  size_t numParameters;
  /// What is to be small, as the option `objective` of -kas-search; empty: the
  /// least latency_ms, then predicted_ms, flops, params.
  const char *objective;
  /// The SQLite file that keeps the search; null: none. It is made when there
  /// is none, else the search in it goes on.
  const char *database;
  /// Further settings that must be equal to go on: names and values in turn.
  const char *const *settings;
  size_t numSettings;
} KasSearchOptions;

/// Makes a searcher on a space of the module (`space` may be null: the only
/// one). It does not need the module afterwards. Null when it fails.
///
/// All functions of a searcher may be called from any thread.
KasSearcher *kasSearcherCreate(KasModule *module, const char *space,
                               KasSearchOptions options,
                               KasDiagnostics diagnostics);
void kasSearcherDestroy(KasSearcher *searcher);

/// Writes a JSON array of the axes of an objective in the form of -kas-search,
/// each an array of its terms, a factor and the name of a metric.
bool kasObjectiveDescribe(const char *text, KasStream json,
                          KasDiagnostics diagnostics);

/// Asks for up to `count` candidates that were not proposed before. Writes a
/// JSON array of objects: `id`, `parent` (null without one), `key` (in
/// hexadecimal), `operator` (the text of a file with `kas.operator
/// @candidate`), and `flops` and `params`, summed over the bindings times
/// their multiplicities. Fewer mean that there are no more now. Candidates that
/// were in flight when an earlier run on the database ended come first.
bool kasSearcherAsk(KasSearcher *searcher, size_t count, KasStream json,
                    KasDiagnostics diagnostics);

/// Tells the metrics of a candidate: `count` names and finite numbers.
bool kasSearcherTellMetrics(KasSearcher *searcher, uint64_t id,
                            const char *const *names, const double *values,
                            size_t count, KasDiagnostics diagnostics);

/// Tells why a candidate has none.
bool kasSearcherTellFailure(KasSearcher *searcher, uint64_t id,
                            const char *reason, KasDiagnostics diagnostics);

/// Writes a JSON array of what the database already had: objects as those of
/// `kasSearcherAsk` with `metrics` (an object) or `failure` (the reason).
bool kasSearcherGetReplayed(KasSearcher *searcher, KasStream json,
                            KasDiagnostics diagnostics);

/// Records what a closer look at a candidate gave: `count` metrics, or the
/// reason of a failure (then `failure` is not null), and how many seconds it
/// took. Needs a database; the algorithm does not learn of it.
bool kasSearcherRecordFinal(KasSearcher *searcher, uint64_t id,
                            const char *const *names, const double *values,
                            size_t count, const char *failure, double seconds,
                            KasDiagnostics diagnostics);

/// Writes a JSON object by identifier of objects with `metrics` or `failure`.
bool kasSearcherGetFinals(KasSearcher *searcher, KasStream json,
                          KasDiagnostics diagnostics);

/// Adds what candidates are compared with, beside the network itself: an
/// operator or a sequence by its IR and a name of its own. `number` becomes its
/// number, -2 or less, which a database keeps for the name; an error where that
/// has another text under the name.
bool kasSearcherAddBaseline(KasSearcher *searcher, const char *name,
                            const char *text, int64_t *number,
                            KasDiagnostics diagnostics);

/// Records `count` numbers of the curve of a training. `candidate` is -1 for
/// the network that candidates are compared with, or the number of a baseline.
/// Needs a database.
bool kasSearcherRecordTraining(KasSearcher *searcher, int64_t candidate,
                               uint64_t seed, const uint64_t *epochs,
                               const char *const *names, const double *values,
                               size_t count, KasDiagnostics diagnostics);

/// Writes a JSON array of arrays: candidate, seed, epoch, name, value.
bool kasSearcherGetTraining(KasSearcher *searcher, KasStream json,
                            KasDiagnostics diagnostics);

/// Every candidate of the space has been proposed.
bool kasSearcherIsExhausted(KasSearcher *searcher);

/// Makes a running and all later calls of `ask` return soon.
void kasSearcherStop(KasSearcher *searcher);

/// Writes a JSON object: `asked`, `evaluated`, `failed`, `expansions`,
/// `rollouts`, `dead_ends`, `duplicates`.
void kasSearcherGetStatistics(KasSearcher *searcher, KasStream json);

/// Records the statistics and closes the database properly. Neither ask nor
/// tell is possible afterwards.
bool kasSearcherClose(KasSearcher *searcher, KasDiagnostics diagnostics);

//===----------------------------------------------------------------------===//
// Trainings within a budget
//===----------------------------------------------------------------------===//

/// Which training of a search comes next, and when it ends: brackets of
/// successive halving within a budget (kas/Search/Core/TrainingPlan.h).
/// Candidates are numbers; the caller has the clock. For one thread at a time.
typedef struct KasTrainingPlan KasTrainingPlan;

typedef struct KasTrainingPlanOptions {
  /// Of a bracket: so many candidates, of which after each rung, a number of
  /// epochs, the share `keep` is trained on. Rungs ascend; there may be none.
  size_t size;
  const int64_t *rungs;
  size_t numRungs;
  double keep;
  /// Of a whole training.
  int64_t epochs;
  /// How many trainings run at once.
  size_t workers;
  /// How many candidates at most are trained again in the end, and how often.
  size_t finalCount, finalSeeds;
  /// The budget, each with a value that is no limit: candidates (SIZE_MAX), and
  /// effort in whole trainings (infinity).
  size_t candidates;
  double trainings;
} KasTrainingPlanOptions;

/// Null when it fails.
KasTrainingPlan *kasTrainingPlanCreate(KasTrainingPlanOptions options,
                                       KasDiagnostics diagnostics);
void kasTrainingPlanDestroy(KasTrainingPlan *plan);

/// So many epochs of the network itself took so long: times of candidates
/// follow from this until the first is known.
void kasTrainingPlanLearn(KasTrainingPlan *plan, int64_t epochs,
                          double seconds);
bool kasTrainingPlanHasLearned(const KasTrainingPlan *plan);
/// The seconds of a training of so many epochs; of the final round of so many
/// candidates; and until all brackets and a new one of so many are done.
double kasTrainingPlanPredict(const KasTrainingPlan *plan, int64_t epochs);
double kasTrainingPlanPredictFinal(const KasTrainingPlan *plan, size_t count);
double kasTrainingPlanPredictBrackets(const KasTrainingPlan *plan, size_t size);
/// How often each of so many baselines is to be trained.
size_t kasTrainingPlanCountBaselineSeeds(const KasTrainingPlan *plan,
                                         size_t baselines, double secondsLeft);

/// How many candidates a new bracket may have beside `others`, which an
/// interruption has left of it; 0 for no new bracket. `known` candidates have
/// an outcome, of which `whole` were trained to the end. `secondsLeft` of the
/// budget of time, infinity without one.
size_t kasTrainingPlanGetRoom(const KasTrainingPlan *plan, double secondsLeft,
                              size_t known, size_t whole, size_t others);

/// From before an interruption: a candidate that was trained for so many epochs
/// and reached this score.
typedef struct KasKnownTraining {
  uint64_t id;
  int64_t epochs;
  double score;
} KasKnownTraining;

void kasTrainingPlanOpen(KasTrainingPlan *plan, const uint64_t *ids,
                         size_t count, const KasKnownTraining *known,
                         size_t numKnown);

/// The next candidate to train, and to the end of which epoch; false when there
/// is none now.
bool kasTrainingPlanTake(KasTrainingPlan *plan, uint64_t *id, int64_t *epochs);

/// A candidate was trained to the end of `epochs` in `seconds`; more is better
/// for `score`. Calls `out` for all that are trained no further, the best
/// first.
bool kasTrainingPlanFinish(KasTrainingPlan *plan, uint64_t id, int64_t epochs,
                           double score, double seconds,
                           void (*out)(uint64_t id, void *userData),
                           void *userData, KasDiagnostics diagnostics);
/// The training of a candidate has failed.
bool kasTrainingPlanFail(KasTrainingPlan *plan, uint64_t id,
                         void (*out)(uint64_t id, void *userData),
                         void *userData, KasDiagnostics diagnostics);

/// Of all candidates so far, in whole trainings.
double kasTrainingPlanGetEffort(const KasTrainingPlan *plan);

#ifdef __cplusplus
}
#endif

#endif // KAS_C_SEARCH_H
