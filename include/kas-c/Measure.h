//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface of measuring: programs on tensors of any element type, and
// schedules found by measuring.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_C_MEASURE_H
#define KAS_C_MEASURE_H

#include "kas-c/Kas.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Machine code of a module.
typedef struct KasProgram KasProgram;

/// Compiles a module in the LLVM dialect, as the pass pipeline
/// `kas-cpu-pipeline` leaves it, for the CPU at hand. The module stays as it
/// is. Null when it fails.
KasProgram *kasModuleLoad(KasModule *module, unsigned optLevel,
                          KasDiagnostics diagnostics);
/// The same, kept in the user's cache for kasProgramFind under the key, 32 to
/// 64 hexadecimal digits of all that the caller made the module of, with a text
/// of the caller.
KasProgram *kasModuleLoadAs(KasModule *module, unsigned optLevel,
                            const char *key, const char *note,
                            KasDiagnostics diagnostics);
/// The program that was kept under a key, by whatever process, and its text;
/// null, without diagnostics, where there is none.
KasProgram *kasProgramFind(const char *key, KasStream note);
void kasProgramDestroy(KasProgram *program);

/// How many pointers the function `name` takes; -1 if the program has no such
/// function.
int64_t kasProgramGetNumTensors(const KasProgram *program, const char *name);

/// How many f32 `NAME_prepack` fills for the function `name`, which takes them
/// after its results; 0 if there is no such function.
int64_t kasProgramGetNumPrepackedElements(const KasProgram *program,
                                          const char *name);

/// Calls the function `name`, which must exist, `runs` times: one pointer to
/// the dense elements of each argument, then of each result. `milliseconds`,
/// unless it is null, becomes the mean of the runs, by the wall clock. Returns
/// null, or what the assertion says that failed, which lives as long as the
/// program: the runs end with it, and `milliseconds` stays as it is.
const char *kasProgramCall(KasProgram *program, const char *name,
                           void *const *tensors, uint64_t runs,
                           double *milliseconds);

/// An argument.
typedef struct KasArray {
  /// Dense, row-major.
  const void *data;
  size_t rank;
  const int64_t *shape;
  /// The type of the elements as MLIR writes it, such as `i64`; null: `f32`.
  const char *type;
} KasArray;

typedef struct KasProfileOptions {
  KasCompileOptions compile;
  /// How often to run; 0: 20 times at least, and for 0.2 s.
  unsigned runs;
  /// Of the arguments that are not given; those that are not of f32 are zero.
  uint64_t seed;
} KasProfileOptions;

/// Compiles the operator `name` at `binding`, or the function `name` where
/// `binding` is null, with its weights prepacked, runs it on the first
/// `numArguments` arguments and random ones, and writes a JSON object:
/// `profile` (where the time goes: `operations`, `passes`;
/// docs/guide/profiling.md), `table` (the same as text) and `trace` (in the
/// format of Chrome's viewer).
bool kasModuleProfile(KasModule *module, const char *name, const char *binding,
                      const KasArray *arguments, size_t numArguments,
                      KasProfileOptions options, KasStream json,
                      KasDiagnostics diagnostics);

/// Opens the database of tunings in file `path`, which is made if there is
/// none, and checks it. Writes a JSON object: `target` and `toolchain`, what
/// times of this machine depend on.
bool kasTuningDatabaseOpen(const char *path, KasStream json,
                           KasDiagnostics diagnostics);

typedef struct KasTuneOptions {
  /// The file of measurements, made if there is none; what it has of this
  /// machine is not measured again.
  const char *database;
  /// What the function is called there.
  const char *network;
  /// Schedules to measure for each kernel, and runs of each.
  int64_t trials, runs;
  uint64_t seed;
  unsigned threads;
} KasTuneOptions;

/// Measures schedules for the kernels of the function `name`, in processes
/// forked from this one, and sets the best ones in the module (see
/// docs/guide/tuning.md). Writes a JSON array of the kernels: `tensors`,
/// `measured`, `failed`, `ratio` (to the time of the cost model's choice) and
/// `schedule` (empty: the cost model's).
bool kasModuleTune(KasModule *module, const char *name, KasTuneOptions options,
                   KasStream json, KasDiagnostics diagnostics);

#ifdef __cplusplus
}
#endif

#endif // KAS_C_MEASURE_H
