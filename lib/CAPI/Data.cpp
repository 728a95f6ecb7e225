//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to data sets in files.
// Callers want one dense array: most formats have it in the file, and CIFAR's
// records, with labels between their images, are copied.
//
//===----------------------------------------------------------------------===//

#include "kas-c/Data.h"
#include "kas/Training/Dataset.h"
#include <cstring>

using namespace kas::training;

struct KasDataset {
  Dataset data;
  /// Where the examples do not lie one after the other.
  std::vector<char> copy = {};
  const void *examples = nullptr;
};

/// Where example `index` begins.
static const char *getStart(const Dataset &data, int64_t index) {
  return data.getElementType() == ElementType::U8
             ? reinterpret_cast<const char *>(data.getBytes(index).data())
             : reinterpret_cast<const char *>(data.getFloats(index).data());
}

/// Sets `examples`.
static void makeDense(KasDataset &dataset) {
  const Dataset &data = dataset.data;
  size_t bytes = data.getNumElements() *
                 (data.getElementType() == ElementType::U8 ? 1 : sizeof(float));
  const char *first = getStart(data, 0);
  bool isDense = true;
  for (int64_t index = 1; index < data.size() && isDense; ++index)
    isDense = getStart(data, index) == first + index * bytes;
  if (!isDense) {
    dataset.copy.resize(data.size() * bytes);
    for (int64_t index = 0; index < data.size(); ++index)
      std::memcpy(dataset.copy.data() + index * bytes, getStart(data, index),
                  bytes);
    first = dataset.copy.data();
  }
  dataset.examples = first;
}

bool kasDatasetLoad(const char *format, const char *const *words,
                    size_t numWords, bool forTesting, KasDataset **dataset,
                    KasDiagnostics diagnostics) {
  *dataset = nullptr;
  llvm::SmallVector<llvm::StringRef> given(words, words + numWords);
  llvm::Expected<Dataset> data = loadDataset(
      format, given, forTesting ? DatasetPart::Test : DatasetPart::Train);
  if (!data) {
    llvm::Error error = data.takeError();
    bool isMissing = error.isA<NoTestPart>();
    std::string message = llvm::toString(std::move(error));
    if (!isMissing)
      diagnostics.report(KasSeverityError, "", message.c_str(),
                         diagnostics.userData);
    return isMissing;
  }
  *dataset = new KasDataset{std::move(*data)};
  makeDense(**dataset);
  return true;
}

void kasDatasetDestroy(KasDataset *dataset) { delete dataset; }

size_t kasDatasetGetSize(const KasDataset *dataset) {
  return static_cast<size_t>(dataset->data.size());
}

size_t kasDatasetGetRank(const KasDataset *dataset) {
  return dataset->data.getShape().size();
}

const int64_t *kasDatasetGetShape(const KasDataset *dataset) {
  return dataset->data.getShape().data();
}

bool kasDatasetHasBytes(const KasDataset *dataset) {
  return dataset->data.getElementType() == ElementType::U8;
}

const void *kasDatasetGetExamples(const KasDataset *dataset) {
  return dataset->examples;
}

const int32_t *kasDatasetGetLabels(const KasDataset *dataset) {
  return dataset->data.getLabels().data();
}
