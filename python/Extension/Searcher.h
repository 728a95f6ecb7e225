//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Searchers, and plans of trainings.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_PYTHON_EXTENSION_SEARCHER_H
#define KAS_PYTHON_EXTENSION_SEARCHER_H

#include <nanobind/nanobind.h>

namespace kas::python {

/// Adds the classes; modules must have been added.
void addSearcher(nanobind::module_ &m);
void addTrainingPlan(nanobind::module_ &m);

} // namespace kas::python

#endif // KAS_PYTHON_EXTENSION_SEARCHER_H
