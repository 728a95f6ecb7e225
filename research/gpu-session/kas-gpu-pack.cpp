//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// kas-gpu-pack: compiles what a GPU session runs, with its inputs and what must
// come out, for research/gpu-session.sh.

#include "SessionCases.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/InitAll.h"
#include "kas/Pipelines/CPU.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/WithColor.h"
#include <atomic>

using namespace kas;
using namespace kas::gpusession;
using llvm::Error;
using llvm::Expected;
namespace cl = llvm::cl;

static cl::OptionCategory category("kas-gpu-pack options");
static cl::opt<std::string> folder(cl::Positional, cl::Required,
                                   cl::desc("FOLDER"), cl::cat(category));
static cl::list<std::string> chips("chips", cl::CommaSeparated,
                                   cl::desc("What to compile for"),
                                   cl::cat(category));
static cl::list<std::string>
    networkFiles("network", cl::desc("A network to pack"), cl::cat(category));
static cl::list<std::string>
    operatorFiles("operators", cl::value_desc("FILE:N=8,Cin=64"),
                  cl::desc("Operators of a file to time at a binding"),
                  cl::cat(category));
static cl::opt<unsigned> randomOperators("random", cl::init(500),
                                         cl::desc("How many random operators"),
                                         cl::cat(category));
static cl::opt<unsigned>
    randomContractions("contractions", cl::init(100),
                       cl::desc("How many random products of two tensors"),
                       cl::cat(category));
static cl::opt<unsigned> schedules("schedules", cl::init(6),
                                   cl::desc("How many of a timed operator"),
                                   cl::cat(category));
static cl::opt<codegen::GPUFormat> format("format",
                                          cl::init(codegen::GPUFormat::Cubin),
                                          codegen::getNVVMFormatValues(),
                                          cl::desc("Of code for CUDA"),
                                          cl::cat(category));
static cl::list<std::string> precisions("precisions", cl::CommaSeparated,
                                        cl::desc("Of what is timed"),
                                        cl::cat(category));
static cl::list<std::string> kinds("kinds", cl::CommaSeparated,
                                   cl::desc("values, time, operators, network"),
                                   cl::cat(category));
static cl::opt<unsigned> stride("stride", cl::init(1),
                                cl::desc("Only each such job of a kind"),
                                cl::cat(category));

/// Each job in a context of its own, as many at once as there are cores; cases
/// are written in the order of the jobs.
static Error run(llvm::ArrayRef<SessionJob> jobs, BundleWriter &writer) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  registerCPUPipelineDialects(registry);
  registerGPUPipelineDialects(registry);
  std::vector<std::optional<Expected<std::vector<PackedCase>>>> done(
      jobs.size());
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(0));
  std::atomic<size_t> count = 0;
  for (size_t i = 0; i < jobs.size(); ++i)
    pool.async([&, i] {
      mlir::MLIRContext context(registry,
                                mlir::MLIRContext::Threading::DISABLED);
      context.loadDialect<KasDialect>();
      done[i].emplace(jobs[i](context));
      if (size_t now = ++count; now % 50 == 0 || now == jobs.size())
        llvm::errs() << now << " of " << jobs.size() << "\n";
    });
  pool.wait();
  Error errors = Error::success();
  for (auto &cases : done) {
    if (!*cases) {
      errors = llvm::joinErrors(std::move(errors), cases->takeError());
      continue;
    }
    for (PackedCase &packed : **cases)
      writer.add(std::move(packed));
  }
  return errors;
}

static Error pack() {
  SessionOptions options;
  if (!chips.empty())
    options.chips = chips;
  options.randomOperators = randomOperators;
  options.randomContractions = randomContractions;
  options.schedules = schedules;
  options.format = format;
  options.precisions = precisions;
  options.networks = networkFiles;
  options.operators = operatorFiles;
  if (schedules == 0 || stride == 0)
    return llvm::createStringError(
        "requires at least 1 for --schedules and --stride, got 0");
  for (const std::string &kind : kinds)
    if (!llvm::is_contained({"values", "time", "operators", "network"}, kind))
      return llvm::createStringError("requires values, time, operators or "
                                     "network for --kinds, got '" +
                                     kind + "'");
  for (const std::string &precision : precisions)
    if (!symbolizeGPUPrecision(precision))
      return llvm::createStringError("requires f32, tf32, f16 or bf16 for "
                                     "--precisions, got '" +
                                     precision + "'");
  mlir::MLIRContext context;
  for (const std::string &chip : options.chips)
    if (auto device = codegen::getGPUDevice(&context, chip); !device)
      return device.takeError();
  std::vector<SessionJob> jobs;
  auto add = [&](llvm::StringRef kind, std::vector<SessionJob> more) {
    if (!kinds.empty() && !llvm::is_contained(kinds, kind))
      return;
    for (size_t i = 0; i < more.size(); i += stride)
      jobs.push_back(std::move(more[i]));
  };
  add("values", getValueJobs(options));
  add("network", getNetworkJobs(options));
  add("operators", getOperatorJobs(options));
  add("time", getTimingJobs(options));
  auto writer = BundleWriter::create(folder);
  if (!writer)
    return writer.takeError();
  if (Error error = run(jobs, **writer))
    return error;
  return (*writer)->close();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "compiles what a GPU session runs (research/gpu-session.sh)\n");
  if (Error error = pack()) {
    llvm::handleAllErrors(std::move(error),
                          [](const llvm::ErrorInfoBase &info) {
                            llvm::WithColor::error(llvm::errs(), "kas-gpu-pack")
                                << info.message() << "\n";
                          });
    return 1;
  }
  return 0;
}
