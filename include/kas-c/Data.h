//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to data sets in files: examples and labels in memory.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_C_DATA_H
#define KAS_C_DATA_H

#include "kas-c/Kas.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Examples of one shape with a class each.
typedef struct KasDataset KasDataset;

/// Reads a data set from files, which must not change as long as it lives:
/// uncompressed ones are mapped. `format` is a format of `kas-train --data`
/// (docs/guide/training.md), `words` its paths and then its options. Sets
/// `dataset` to null, without an error, where the part for testing is requested
/// and the data have none. False when it fails.
bool kasDatasetLoad(const char *format, const char *const *words,
                    size_t numWords, bool forTesting, KasDataset **dataset,
                    KasDiagnostics diagnostics);
void kasDatasetDestroy(KasDataset *dataset);

/// The number of examples, and of the dimensions of one of them.
size_t kasDatasetGetSize(const KasDataset *dataset);
size_t kasDatasetGetRank(const KasDataset *dataset);
const int64_t *kasDatasetGetShape(const KasDataset *dataset);

/// Whether elements are bytes; else they are f32.
bool kasDatasetHasBytes(const KasDataset *dataset);
/// All elements: dense, in C order. They live as long as the data set.
const void *kasDatasetGetExamples(const KasDataset *dataset);
const int32_t *kasDatasetGetLabels(const KasDataset *dataset);

#ifdef __cplusplus
}
#endif

#endif // KAS_C_DATA_H
