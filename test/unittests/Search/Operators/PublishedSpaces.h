//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The spaces that papers publish, for tests.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_SEARCH_OPERATORS_PUBLISHEDSPACES_H
#define TEST_UNITTESTS_SEARCH_OPERATORS_PUBLISHEDSPACES_H

#include "Problems.h"
#include "llvm/ADT/Twine.h"

namespace kas {

/// The published spaces, from their files.
class PublishedSpacesTest : public ProblemTest {
protected:
  std::shared_ptr<search::SearchProblem> load(llvm::StringRef name) {
    std::string path = (llvm::Twine(KAS_SPACES_DIRECTORY) + "/" + name).str();
    module = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
    return std::make_shared<search::SearchProblem>(
        search::SearchProblem::get(*module->getOps<SpaceOp>().begin()));
  }
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace kas

#endif // TEST_UNITTESTS_SEARCH_OPERATORS_PUBLISHEDSPACES_H
