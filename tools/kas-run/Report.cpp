//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KasRun.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::StringRef;

llvm::Error kas::writeResults(StringRef path,
                              const FunctionSignature &signature,
                              llvm::MutableArrayRef<Tensor> results) {
  if (path.ends_with(".npz")) {
    NamedTensors named;
    for (auto [result, tensor] : llvm::zip(signature.results, results))
      named.insert({result.name, tensor.clone()});
    return writeNpz(path, named);
  }
  if (results.size() != 1)
    return createStringError("function '" + signature.name + "' has " +
                             llvm::Twine(results.size()) +
                             " results, which need an output file *.npz");
  return writeNpy(path, results.front());
}

TimingOptions kas::getTimingOptions(const RunSettings &settings) {
  TimingOptions options;
  if (settings.runs) {
    options.minRuns = options.maxRuns = settings.runs;
    options.seconds = 0;
  }
  return options;
}

int64_t kas::countParameters(const FunctionSignature &signature) {
  int64_t count = 0;
  for (const TensorSignature &argument :
       llvm::drop_begin(signature.arguments, !signature.arguments.empty()))
    count += llvm::cantFail(numElements(argument.shape));
  return count;
}

std::optional<double> RunReport::getRate() const {
  if (!timing || !macs)
    return std::nullopt;
  return 2e-6 * static_cast<double>(existingMacs.value_or(*macs)) /
         timing->median;
}

static void printJSON(llvm::raw_ostream &stream, const RunReport &report) {
  llvm::json::OStream json(stream);
  json.objectBegin();
  json.attribute(report.kind, report.name);
  json.attribute("device", report.device);
  if (report.deviceName)
    json.attribute("device_name", *report.deviceName);
  if (!report.libraries.empty())
    json.attributeObject("libraries", [&] {
      for (const auto &[text, count] : report.libraries)
        json.attribute(text, count);
    });
  if (report.binding) {
    json.attributeObject("bind", [&] {
      llvm::SmallVector<StringRef> entries;
      StringRef(*report.binding).split(entries, ',', -1, /*KeepEmpty=*/false);
      for (StringRef entry : entries) {
        auto [symbol, value] = entry.split('=');
        int64_t number = 0;
        value.getAsInteger(10, number);
        json.attribute(symbol, number);
      }
    });
  }
  if (report.macs) {
    json.attribute("macs", *report.macs);
    json.attribute("flops", 2 * *report.macs);
  }
  if (report.existingMacs)
    json.attribute("existing_flops", 2 * *report.existingMacs);
  if (report.params)
    json.attribute("params", *report.params);
  if (report.cost) {
    json.attribute("flops_unprepared", report.cost->flopsUnprepared);
    json.attribute("training_flops", report.cost->trainingFlops);
    json.attribute("bytes", report.cost->bytes);
  }
  if (report.compileMilliseconds)
    json.attribute("compile_ms", *report.compileMilliseconds);
  if (report.prepackedElements)
    json.attribute("prepared_elements", *report.prepackedElements);
  if (report.timing) {
    json.attribute("median_ms", report.timing->median);
    json.attribute("min_ms", report.timing->min);
    json.attribute("n", report.timing->count);
    if (std::optional<double> rate = report.getRate())
      json.attribute("gflops", *rate);
  }
  if (report.profile)
    json.attribute("profile", report.profile->toJSON());
  // JSON has no infinity: a result that differs by a NaN has no number.
  if (report.maxRelativeError) {
    if (std::isfinite(*report.maxRelativeError))
      json.attribute("max_rel_err", *report.maxRelativeError);
    else
      json.attribute("max_rel_err", nullptr);
  }
  if (report.exact)
    json.attribute("exact", llvm::json::Object(report.exactFields));
  if (report.difference)
    json.attribute("difference", *report.difference);
  json.attribute("ok", report.ok);
  json.objectEnd();
  stream << "\n";
}

void RunReport::print(llvm::raw_ostream &stream, bool json) const {
  if (json)
    return printJSON(stream, *this);
  stream << kind << " " << name << " on " << device;
  if (deviceName)
    stream << " (" << *deviceName << ")";
  if (binding)
    stream << " with " << *binding;
  stream << "\n";
  for (const auto &[text, count] : libraries)
    stream << "  " << count << (count == 1 ? " launch" : " launches") << " by "
           << text << "\n";
  if (macs)
    stream << "  MACs " << *macs << ", FLOPs " << 2 * *macs << "\n";
  if (params)
    stream << "  parameters " << *params << "\n";
  if (cost && printsCost)
    stream << "  existing FLOPs " << 2 * existingMacs.value_or(0)
           << ", unprepared FLOPs " << cost->flopsUnprepared
           << ", training FLOPs " << cost->trainingFlops << ", bytes "
           << cost->bytes << "\n";
  if (compileMilliseconds) {
    const CompileTimes &times = compileTimes;
    double passes = *compileMilliseconds - times.translate - times.optimize -
                    times.codegen - times.link;
    stream << "  compiled in "
           << llvm::format("%.1f ms (passes %.1f, translation %.1f, ",
                           *compileMilliseconds, passes, times.translate)
           << llvm::format("optimization %.1f, code %.1f, linking %.1f)\n",
                           times.optimize, times.codegen, times.link);
  }
  if (timing) {
    stream << "  time "
           << llvm::format("%.4f ms median, %.4f ms min of ", timing->median,
                           timing->min)
           << timing->count;
    if (std::optional<double> rate = getRate())
      stream << llvm::format(", %.2f GFLOP/s", *rate);
    stream << "\n";
  }
  if (profile)
    profile->print(stream);
  if (maxRelativeError)
    stream << "  max relative error " << llvm::format("%.2e", *maxRelativeError)
           << "\n";
  if (exact)
    stream << "  " << *exact << "\n";
  if (difference)
    stream << "  " << *difference << "\n";
  stream << (ok ? "  ok\n" : "  FAILED\n");
}
