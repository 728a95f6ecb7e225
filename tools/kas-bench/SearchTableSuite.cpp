//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "SearchSpaces.h"
#include "SearchTable.h"
#include "kas/ExecutionEngine/Npy.h"
#include "kas/Search/Evaluators/Imitation.h"
#include "kas/Search/Operators/GraphState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

using namespace kas;
using namespace kas::execution;
using namespace kas::search;
using llvm::createStringError;
using llvm::Error;

llvm::Expected<std::shared_ptr<const SearchProblem>>
kas::parseSearchProblem(mlir::MLIRContext &context, llvm::StringRef text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return createStringError("a space of the benchmark does not parse");
  SpaceOp space = *module->getOps<SpaceOp>().begin();
  return std::make_shared<const SearchProblem>(SearchProblem::get(space));
}

/// The recorded inputs and outputs of a layer: the first half of the samples is
/// for fitting, the second half is held.
struct Activations {
  ImitationSamples fitted, held;
};

static llvm::Expected<Activations> readActivations(llvm::StringRef folder) {
  auto inputs = readNpy((folder + "/inputs.npy").str());
  if (!inputs)
    return inputs.takeError();
  auto outputs = readNpy((folder + "/outputs.npy").str());
  if (!outputs)
    return outputs.takeError();
  // As the binding of the space has it.
  constexpr int64_t channels = 8, extent = 6;
  for (const Tensor *tensor : {&*inputs, &*outputs}) {
    llvm::ArrayRef<int64_t> shape = tensor->getShape();
    if (shape.size() != 4 || shape[0] < 2 ||
        shape.drop_front() != llvm::ArrayRef({channels, extent, extent}) ||
        shape[0] != inputs->getShape()[0])
      return createStringError(folder +
                               ": expected arrays of shape [samples, 8, 6, 6]");
  }
  Activations activations;
  auto count = static_cast<unsigned>(inputs->getShape()[0] / 2);
  size_t size = size_t(count) * channels * extent * extent;
  for (auto [samples, begin] : {std::pair(&activations.fitted, size_t(0)),
                                std::pair(&activations.held, size)}) {
    samples->count = count;
    samples->data = inputs->getValues().slice(begin, size);
    samples->outputs = outputs->getValues().slice(begin, size);
  }
  return activations;
}

Error kas::runSearchTableSuite(mlir::MLIRContext &context,
                               const BenchSettings &settings,
                               BenchReport &report) {
  auto problem = parseSearchProblem(context, tabulatedSpace);
  if (!problem)
    return problem.takeError();
  auto activations = readActivations(settings.activations);
  if (!activations)
    return activations.takeError();
  Enumerator enumerator(makeGraphState(*problem), {});
  std::vector<std::pair<Path, std::shared_ptr<const Solution>>> found;
  (void)enumerator.run({}, [&](llvm::ArrayRef<Move> path, const State &state) {
    found.emplace_back(Path(path.begin(), path.end()), state.getSolution());
  });
  llvm::errs() << found.size() << " operators\n";
  SearchTable table;
  for (const auto &[path, solution] : found) {
    const auto &graph = static_cast<const OperatorGraph &>(*solution);
    auto products = getProducts(**problem, graph, (*problem)->bindings.front());
    if (!products)
      return products.takeError();
    double error = getImitationError(*products, activations->fitted,
                                     activations->held, {});
    SearchTable::Row row{path, 1 - error, {}};
    graph.getFeatures(row.features);
    table.rows.push_back(std::move(row));
  }
  llvm::outs()
      << "# All operators of spaces/tabulated.mlir, evaluated by `kas-bench "
         "search-table` on the folder `activations`; SearchTable.h says what "
         "the columns are.\n";
  table.print(llvm::outs());
  return Error::success();
}
