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
// (docs/internals/predicted-times.md). StageWork.cpp counts the work of an
// operator; here a count becomes milliseconds on one machine.
//
//===----------------------------------------------------------------------===//

#include "kas/Schedule/MachineModel.h"
#include "kas/Support/Version.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace kas;
using namespace kas::schedule;
using llvm::createStringError;
using llvm::StringRef;

namespace {
/// A kind of work in files, and what it usually takes, in milliseconds.
struct WorkName {
  llvm::StringLiteral name;
  double usual;
};
} // namespace

/// In the order of `Work`. The times are those of a usual core, per count of
/// the kind's own unit (`kas/Schedule/StageWork.h`): they predict without
/// calibration, and hold for kinds that no sample has.
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
  // Nothing was measured: a cautious factor.
  model.margin = 4;
  model.cpu = cpu.str();
  return model;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::string MachineModel::print() const {
  // Times by name, so that a file stays readable when kinds are added.
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
  // What one machine or version has learned is wrong for another.
  if (llvm::Error error = check("cpu", cpu))
    return error;
  if (llvm::Error error = check("kas_version", getVersion()))
    return error;
  MachineModel model;
  model.cpu = cpu.str();
  model.margin = object->getNumber("margin").value_or(0);
  // Written so that NaN fails, too.
  if (!(model.margin >= 1) || !std::isfinite(model.margin))
    return createStringError("requires a number from 1 on as 'margin'");
  const llvm::json::Object *times = object->getObject("milliseconds");
  if (!times)
    return createStringError("requires an object as 'milliseconds'");
  for (unsigned kind = 0; kind < numWorks; ++kind) {
    // A kind that the file lacks is an error.
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
/// of work: these stay positive. Logarithms of predicted over measured times
/// are the errors, so that fast and slow operators count alike. With one
/// parameter `p` per kind, the logarithm of its time, the prediction is
/// `log(sum of exp(p) * count)`.
class Fitter {
public:
  Fitter(llvm::ArrayRef<WorkSample> samples, const MachineModel &usual)
      : samples(samples), usual(usual), model(usual) {}
  MachineModel run();

private:
  using Vector = std::array<double, numWorks>;
  /// Errors beyond this count by their magnitude, below by their square. Of
  /// logarithms: 0.2 is about 22 %. This is Huber's loss, so that single
  /// operators that are predicted badly do not decide.
  static constexpr double small = 0.2;
  /// Of the deviation from the usual model. Keeps kinds that few samples have
  /// near to their usual times, and the matrix positive definite.
  static constexpr double weight = 0.006;

  /// The value that is minimized.
  double getLoss(const MachineModel &candidate) const;
  double getDeviation(const MachineModel &candidate, unsigned kind) const {
    return std::log(candidate.milliseconds[kind] / usual.milliseconds[kind]);
  }
  /// Sets `matrix` (the approximate Hessian, J^T J) and `gradient` (J^T e) at
  /// `model`.
  void linearize();
  /// The step of all parameters for this damping.
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
    // Huber's weight: errors beyond `small` count by their magnitude.
    double share = std::min(1.0, small / std::max(std::abs(error), 1e-9));
    // The derivative of the logarithm by each parameter: the kind's share of
    // the prediction.
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
    // Marquardt's scaling of the diagonal.
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
  // A factor of e^2 per step at most; the fit ends when the loss falls by less
  // than `enough`.
  constexpr double maxStep = 2, enough = 1e-7;
  double loss = getLoss(model), damping = 1e-2;
  for (unsigned number = 0; number < maxSteps; ++number) {
    linearize();
    bool isBetter = false;
    // More damping means a smaller step, closer to steepest descent.
    for (; !isBetter && damping < 1e8; damping *= 4) {
      Vector step = solve(damping);
      MachineModel next = model;
      for (unsigned kind = 0; kind < numWorks; ++kind)
        next.milliseconds[kind] *=
            std::exp(std::clamp(-step[kind], -maxStep, maxStep));
      double nextLoss = getLoss(next);
      // Also where the loss is NaN.
      if (!(nextLoss < loss))
        continue;
      isBetter = true;
      if (loss - nextLoss < enough)
        return next;
      model = next;
      loss = nextLoss;
      // The loop's own `damping *= 4` follows: a third of what succeeded.
      damping = std::max(damping / 12, 1e-7);
    }
    if (!isBetter)
      break;
  }
  return model;
}

MachineModel kas::schedule::fitMachineModel(llvm::ArrayRef<WorkSample> samples,
                                            StringRef cpu) {
  MachineModel usual = MachineModel::getUsual(cpu);
  if (samples.empty())
    return usual;
  MachineModel model = Fitter(samples, usual).run();
  std::vector<double> ratios;
  for (const WorkSample &sample : samples)
    ratios.push_back(model.predict(sample.work) / sample.milliseconds);
  llvm::sort(ratios);
  // The 99th percentile of predicted over measured.
  model.margin = std::max(1.0, ratios[(ratios.size() - 1) * 99 / 100]);
  return model;
}
