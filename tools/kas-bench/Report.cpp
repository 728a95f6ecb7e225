//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasBench.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "kas/Dialect/Kas/Transforms/Specialize.h"
#include "kas/Library/Operators.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace kas;
using namespace kas::library;
using llvm::createStringError;
using llvm::StringRef;

/// JSON has no infinity and no NaN.
static llvm::json::Value getNumber(double value) {
  return std::isfinite(value) ? llvm::json::Value(value) : nullptr;
}

void BenchReport::print(const BenchLine &line) {
  isEmpty = false;
  if (line.ok && !*line.ok)
    failures.push_back(line.name + " (" + line.implementation + ")");
  llvm::json::OStream json(stream);
  json.object([&] {
    json.attribute("suite", suite);
    if (!isa.empty())
      json.attribute("isa", isa);
    json.attribute("case", line.name);
    json.attribute("impl", line.implementation);
    json.attribute("metric", line.metric);
    json.attribute("value", getNumber(line.value));
    json.attribute("unit", line.unit);
    if (line.timing) {
      json.attribute("median", line.timing->median);
      json.attribute("min", line.timing->min);
      json.attribute("n", line.timing->count);
    }
    if (line.maxRelativeError)
      json.attribute("max_rel_err", getNumber(*line.maxRelativeError));
    if (line.ok)
      json.attribute("ok", *line.ok);
  });
  stream << "\n";
  stream.flush();
}

void BenchReport::addToMean(StringRef className, const BenchLine &line) {
  std::string name = ("geomean/" + className).str();
  auto *found = llvm::find_if(means, [&](const Mean &mean) {
    return mean.name == name && mean.metric == line.metric;
  });
  if (found == means.end()) {
    means.push_back({name, line.metric, line.unit});
    found = std::prev(means.end());
  }
  found->logSum += std::log(line.value);
  ++found->count;
}

void BenchReport::printMeans() {
  for (const Mean &mean : means)
    print({mean.name, mean.metric,
           std::exp(mean.logSum / static_cast<double>(mean.count)), mean.unit,
           std::nullopt, std::nullopt, std::nullopt});
}

llvm::Error BenchReport::check() const {
  if (isEmpty)
    return createStringError("expected cases of the suite '" + suite +
                             "' that match --filter, got none");
  if (failures.empty())
    return llvm::Error::success();
  return createStringError("expected outputs as the reference has them, got "
                           "others of: " +
                           llvm::join(failures, ", "));
}

bool kas::isSelected(const BenchSettings &settings, StringRef name) {
  return llvm::Regex(settings.filter).match(name);
}

llvm::Expected<BenchOperator> BenchOperator::load(mlir::MLIRContext &context,
                                                  StringRef name,
                                                  StringRef binding) {
  mlir::OwningOpRef<mlir::ModuleOp> library =
      parseNamedOperator(&context, name);
  if (!library)
    return createStringError("no operator '" + name + "' in the library");
  OperatorOp op = *library->getOps<OperatorOp>().begin();
  return load(std::move(library), op, binding);
}

llvm::Expected<BenchOperator>
BenchOperator::load(mlir::OwningOpRef<mlir::ModuleOp> library,
                    OperatorOp source, StringRef binding) {
  auto attr = parseBinding(source.getContext(), binding);
  if (!attr)
    return attr.takeError();
  auto emitError = [&] { return source.emitError(); };
  auto fail = [&] {
    return createStringError("operator '" + source.getSymName() +
                             "' does not take " + binding);
  };
  mlir::FailureOr<Binding> values = getBinding(source, *attr, emitError);
  if (mlir::failed(values))
    return fail();
  mlir::OpBuilder builder(source);
  mlir::FailureOr<OperatorOp> concrete =
      specialize(builder, source, *values, "concrete", emitError);
  if (mlir::failed(concrete))
    return fail();
  mlir::FailureOr<Cost> cost = getCost(*concrete, {}, emitError);
  mlir::FailureOr<int64_t> existing = getExistingMacs(*concrete, {}, emitError);
  if (mlir::failed(cost) || mlir::failed(existing))
    return fail();
  BenchOperator loaded;
  loaded.op = *concrete;
  loaded.macs = cost->macs;
  loaded.existingMacs = *existing;
  loaded.module = createOperatorModule(*concrete);
  loaded.library = std::move(library);
  return loaded;
}
