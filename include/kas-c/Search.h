//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface of the search: spaces, and searchers that propose operators
// (ask) and learn what became of them (tell).
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

/// Records what candidates are compared with, beside the network itself: an
/// operator or a sequence by its IR, with a `number` of -2 or less and a name
/// of its own. What is there of that number or name is replaced. Needs a
/// database.
bool kasSearcherRecordBaseline(KasSearcher *searcher, int64_t number,
                               const char *name, const char *text,
                               KasDiagnostics diagnostics);

/// Writes a JSON array of objects with `number`, `name` and `text`.
bool kasSearcherGetBaselines(KasSearcher *searcher, KasStream json,
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

#ifdef __cplusplus
}
#endif

#endif // KAS_C_SEARCH_H
