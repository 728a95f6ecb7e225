//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which metrics an evaluator gives, to check before a search that its objective
// and its limits are about some of them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SEARCH_EVALUATORS_METRICNAMES_H
#define KAS_SEARCH_EVALUATORS_METRICNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace kas::search {

/// The metrics of the evaluator of this name, with any number in the place of
/// `N`; nothing where only its program or its library knows them.
std::optional<std::vector<std::string>> getMetricsOf(llvm::StringRef evaluator);

/// Whether one of `evaluators` may give each of `metrics`, which `option` is
/// about; if not, the error has the names that there are, one that is near, and
/// the evaluator that would give the metric.
llvm::Error checkMetrics(llvm::StringRef option,
                         llvm::ArrayRef<std::string> metrics,
                         llvm::ArrayRef<std::string> evaluators);

} // namespace kas::search

#endif // KAS_SEARCH_EVALUATORS_METRICNAMES_H
