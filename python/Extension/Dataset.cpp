//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The readers of data sets, for Python: arrays of NumPy that keep the memory of
// the data set alive, without copies.
//
//===----------------------------------------------------------------------===//

#include "Dataset.h"
#include "Calls.h"
#include "kas-c/Data.h"
#include <nanobind/ndarray.h>

using namespace kas::python;
namespace nb = nanobind;
using namespace nb::literals;

using ReadOnly = nb::ndarray<nb::numpy, nb::ro>;

/// The examples and labels, or None where the data have no part for testing.
static std::optional<std::pair<ReadOnly, ReadOnly>>
loadDataset(const std::string &format, const std::vector<std::string> &words,
            bool forTesting) {
  std::vector<const char *> pointers = getPointers(words);
  KasDataset *dataset = nullptr;
  run([&](KasDiagnostics sink) {
    return kasDatasetLoad(format.c_str(), pointers.data(), pointers.size(),
                          forTesting, &dataset, sink);
  });
  if (!dataset)
    return std::nullopt;
  nb::capsule owner(dataset, [](void *pointer) noexcept {
    kasDatasetDestroy(static_cast<KasDataset *>(pointer));
  });
  size_t size = kasDatasetGetSize(dataset);
  std::vector<size_t> shape = {size};
  const int64_t *dims = kasDatasetGetShape(dataset);
  shape.insert(shape.end(), dims, dims + kasDatasetGetRank(dataset));
  auto wrap = [&](const void *data, size_t rank, nb::dlpack::dtype dtype) {
    return ReadOnly(data, rank, shape.data(), owner, nullptr, dtype);
  };
  return std::pair(wrap(kasDatasetGetExamples(dataset), shape.size(),
                        kasDatasetHasBytes(dataset) ? nb::dtype<uint8_t>()
                                                    : nb::dtype<float>()),
                   wrap(kasDatasetGetLabels(dataset), 1, nb::dtype<int32_t>()));
}

void kas::python::addDataset(nb::module_ &m) {
  m.def("load_dataset", &loadDataset, "format"_a, "words"_a, "for_testing"_a);
}
