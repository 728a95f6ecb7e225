//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The readers of data sets, for Python.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PYTHON_EXTENSION_DATASET_H
#define KAS_PYTHON_EXTENSION_DATASET_H

#include <nanobind/nanobind.h>

namespace kas::python {

void addDataset(nanobind::module_ &m);

} // namespace kas::python

#endif // KAS_PYTHON_EXTENSION_DATASET_H
