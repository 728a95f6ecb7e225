//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts times as sums over kinds of work, and fits the time of each kind to
// measurements by Levenberg and Marquardt's method
// (docs/internals/predicted-times.md).
//
//===----------------------------------------------------------------------===//

#include "kas/Solver/MachineModel.h"
#include "kas/Support/Version.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace kas;
using namespace kas::solver;
using llvm::createStringError;
using llvm::StringRef;

namespace {
/// A kind of work in files, and what it usually takes, in milliseconds.
struct WorkName {
  llvm::StringLiteral name;
  double usual;
};
} // namespace

/// In the order of `Work`.
static constexpr WorkName works[] = {{"operator", 8e-4},
                                     {"stage", 2e-4},
                                     {"row_products", 1.4e-7},
                                     {"row_stores", 7e-8},
                                     {"row_packing", 5e-7},
                                     {"panel_products", 1.3e-7},
                                     {"panel_copies", 3.5e-8},
                                     {"panel_strided_copies", 4e-8},
                                     {"panel_single_copies", 3e-7},
                                     {"panel_stores", 5e-8},
                                     {"direct", 1.1e-7},
                                     {"direct_borders", 1.1e-7},
                                     {"loop_vectors", 1e-7},
                                     {"loop_points", 4e-7},
                                     {"loop_sums", 8e-7},
                                     {"copy_vectors", 4e-7},
                                     {"copy_points", 5e-7},
                                     {"transposed", 3e-7},
                                     {"streamed_l1", 2e-7},
                                     {"streamed_l2", 4e-7},
                                     {"streamed_l3", 2.4e-6},
                                     {"scattered_l1", 3e-7},
                                     {"scattered_l2", 8e-7},
                                     {"scattered_l3", 4e-6},
                                     {"pages", 1e-6}};
static_assert(std::size(works) == numWorks);

double MachineModel::predict(const StageWork &work) const {
  double sum = 0;
  for (unsigned kind = 0; kind < numWorks; ++kind)
    sum += milliseconds[kind] * work.counts[kind];
  return sum;
}

MachineModel MachineModel::getUsual(StringRef cpu) {
  MachineModel model;
  for (unsigned kind = 0; kind < numWorks; ++kind)
    model.milliseconds[kind] = works[kind].usual;
  model.margin = 4;
  model.cpu = cpu.str();
  return model;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::string MachineModel::print() const {
  llvm::json::Object times;
  for (unsigned kind = 0; kind < numWorks; ++kind)
    times[works[kind].name] = milliseconds[kind];
  llvm::json::Value value =
      llvm::json::Object{{"cpu", cpu},
                         {"kas_version", getVersion()},
                         {"margin", margin},
                         {"milliseconds", std::move(times)}};
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << llvm::formatv("{0:2}", value) << "\n";
  return text;
}

llvm::Expected<MachineModel> MachineModel::parse(StringRef text,
                                                 StringRef cpu) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return createStringError("requires a JSON object");
  auto check = [&](StringRef key, StringRef wanted) -> llvm::Error {
    StringRef found = object->getString(key).value_or("nothing");
    if (found == wanted)
      return llvm::Error::success();
    return createStringError("requires '" + wanted + "' as '" + key +
                             "', got '" + found + "'");
  };
  if (llvm::Error error = check("cpu", cpu))
    return error;
  if (llvm::Error error = check("kas_version", getVersion()))
    return error;
  MachineModel model;
  model.cpu = cpu.str();
  model.margin = object->getNumber("margin").value_or(0);
  if (!(model.margin >= 1) || !std::isfinite(model.margin))
    return createStringError("requires a number from 1 on as 'margin'");
  const llvm::json::Object *times = object->getObject("milliseconds");
  if (!times)
    return createStringError("requires an object as 'milliseconds'");
  for (unsigned kind = 0; kind < numWorks; ++kind) {
    double time = times->getNumber(works[kind].name).value_or(-1);
    if (!(time >= 0) || !std::isfinite(time))
      return createStringError("requires a number from 0 on as '" +
                               works[kind].name + "' of 'milliseconds'");
    model.milliseconds[kind] = time;
  }
  return model;
}

std::string MachineModel::getPath(StringRef cpu) {
  llvm::SmallString<128> path;
  if (!llvm::sys::path::cache_directory(path))
    return "";
  llvm::sys::path::append(path, "kas", "machine-" + cpu + ".json");
  return path.str().str();
}

//===----------------------------------------------------------------------===//
// Learning
//===----------------------------------------------------------------------===//

namespace {

/// Levenberg and Marquardt's method on the logarithms of the times of the kinds
/// of work: these stay positive.
class Fitter {
public:
  Fitter(llvm::ArrayRef<WorkSample> samples, const MachineModel &usual)
      : samples(samples), usual(usual), model(usual) {}
  MachineModel run();

private:
  using Vector = std::array<double, numWorks>;
  /// Errors beyond this count by their magnitude, below by their square.
  static constexpr double small = 0.2;
  /// Of the deviation from the usual model.
  static constexpr double weight = 0.006;

  double getLoss(const MachineModel &candidate) const;
  double getDeviation(const MachineModel &candidate, unsigned kind) const {
    return std::log(candidate.milliseconds[kind] / usual.milliseconds[kind]);
  }
  void linearize();
  Vector solve(double damping) const;

  llvm::ArrayRef<WorkSample> samples;
  const MachineModel &usual;
  MachineModel model;
  std::array<Vector, numWorks> matrix = {};
  Vector gradient = {};
};

} // namespace

double Fitter::getLoss(const MachineModel &candidate) const {
  double loss = 0;
  for (const WorkSample &sample : samples) {
    double error = std::abs(
        std::log(candidate.predict(sample.work) / sample.milliseconds));
    loss += error < small ? error * error / 2 : small * (error - small / 2);
  }
  for (unsigned kind = 0; kind < numWorks; ++kind)
    loss += weight / 2 * std::pow(getDeviation(candidate, kind), 2);
  return loss;
}

void Fitter::linearize() {
  matrix = {};
  gradient = {};
  for (const WorkSample &sample : samples) {
    double predicted = model.predict(sample.work);
    double error = std::log(predicted / sample.milliseconds);
    double share = std::min(1.0, small / std::max(std::abs(error), 1e-9));
    Vector row;
    for (unsigned kind = 0; kind < numWorks; ++kind)
      row[kind] =
          model.milliseconds[kind] * sample.work.counts[kind] / predicted;
    for (unsigned i = 0; i < numWorks; ++i) {
      gradient[i] += share * row[i] * error;
      for (unsigned j = 0; j < numWorks; ++j)
        matrix[i][j] += share * row[i] * row[j];
    }
  }
  for (unsigned kind = 0; kind < numWorks; ++kind) {
    matrix[kind][kind] += weight;
    gradient[kind] += weight * getDeviation(model, kind);
  }
}

/// Gauss's elimination; the matrix is positive definite.
Fitter::Vector Fitter::solve(double damping) const {
  std::array<Vector, numWorks> left = matrix;
  Vector right = gradient, step;
  for (unsigned i = 0; i < numWorks; ++i)
    left[i][i] *= 1 + damping;
  for (unsigned i = 0; i < numWorks; ++i)
    for (unsigned j = i + 1; j < numWorks; ++j) {
      double factor = left[j][i] / left[i][i];
      for (unsigned k = i; k < numWorks; ++k)
        left[j][k] -= factor * left[i][k];
      right[j] -= factor * right[i];
    }
  for (unsigned i = numWorks; i-- > 0;) {
    double rest = right[i];
    for (unsigned k = i + 1; k < numWorks; ++k)
      rest -= left[i][k] * step[k];
    step[i] = rest / left[i][i];
  }
  return step;
}

MachineModel Fitter::run() {
  constexpr unsigned maxSteps = 200;
  constexpr double maxStep = 2, enough = 1e-7;
  double loss = getLoss(model), damping = 1e-2;
  for (unsigned number = 0; number < maxSteps; ++number) {
    linearize();
    bool isBetter = false;
    for (; !isBetter && damping < 1e8; damping *= 4) {
      Vector step = solve(damping);
      MachineModel next = model;
      for (unsigned kind = 0; kind < numWorks; ++kind)
        next.milliseconds[kind] *=
            std::exp(std::clamp(-step[kind], -maxStep, maxStep));
      double nextLoss = getLoss(next);
      if (!(nextLoss < loss))
        continue;
      isBetter = true;
      if (loss - nextLoss < enough)
        return next;
      model = next;
      loss = nextLoss;
      damping = std::max(damping / 12, 1e-7);
    }
    if (!isBetter)
      break;
  }
  return model;
}

MachineModel kas::solver::fitMachineModel(llvm::ArrayRef<WorkSample> samples,
                                          StringRef cpu) {
  MachineModel usual = MachineModel::getUsual(cpu);
  if (samples.empty())
    return usual;
  MachineModel model = Fitter(samples, usual).run();
  std::vector<double> ratios;
  for (const WorkSample &sample : samples)
    ratios.push_back(model.predict(sample.work) / sample.milliseconds);
  llvm::sort(ratios);
  model.margin = std::max(1.0, ratios[(ratios.size() - 1) * 99 / 100]);
  return model;
}
