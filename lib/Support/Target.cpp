//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CPU targets: names and features checked by LLVM's tables, and the numbers
// that cost models need (vectors, caches, issue width).
// LLVM's tables know registers, instructions and features, but neither the size
// of a cache nor how many vectors of 512 bits a core begins per cycle; these
// are in tables here. The strategies of the CPU
// (docs/internals/code-generation.md) plan tiles with the result.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Target.h"
#include "kas/Support/NearName.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/AArch64TargetParser.h"
#include "llvm/TargetParser/ARMTargetParser.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/RISCVTargetParser.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include <array>
#include <map>
#include <mutex>
#include <unistd.h>

using namespace kas;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Triple;

/// Makes LLVM's tables for `triple` available; those of this machine's
/// architecture alone are ready sooner.
/// The initializers of static variables run once, whichever thread is first.
static void initializeLLVM(const Triple &triple) {
  if (triple.getArch() == Triple(llvm::sys::getProcessTriple()).getArch()) {
    static const bool native = [] {
      llvm::InitializeNativeTarget();
      llvm::InitializeNativeTargetAsmPrinter();
      return true;
    }();
    (void)native;
    return;
  }
  static const bool all = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    return true;
  }();
  (void)all;
}

void kas::initializeHostTarget() {
  initializeLLVM(Triple(llvm::sys::getProcessTriple()));
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// The CPUs of an architecture, sorted; none if it is not one of ours.
static SmallVector<StringRef> getCPUs(const Triple &triple) {
  // "generic" is no name in the tables of some architectures, but means
  // something everywhere: the base instructions.
  SmallVector<StringRef> names{"generic"};
  switch (triple.getArch()) {
  case Triple::x86_64:
    llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
    break;
  case Triple::aarch64:
    llvm::AArch64::fillValidCPUArchList(names);
    break;
  case Triple::riscv64:
    llvm::RISCV::fillValidCPUArchList(names, /*IsRV64=*/true);
    break;
  case Triple::riscv32:
    llvm::RISCV::fillValidCPUArchList(names, /*IsRV64=*/false);
    break;
  case Triple::arm:
  case Triple::thumb:
    llvm::ARM::fillValidCPUArchList(names);
    break;
  default:
    return {};
  }
  llvm::sort(names);
  names.erase(llvm::unique(names), names.end());
  return names;
}

/// The triple that `names` mean: the given one, or the first of Linux that has
/// the CPU. The order of `linuxTriples` decides for names of several
/// architectures.
static Expected<Triple> chooseTriple(const TargetNames &names) {
  const StringRef linuxTriples[] = {"x86_64-unknown-linux-gnu",
                                    "aarch64-unknown-linux-gnu",
                                    "riscv64-unknown-linux-gnu"};
  if (names.triple.empty()) {
    if (names.cpu == "host")
      return Triple(llvm::sys::getProcessTriple());
    Triple host(llvm::sys::getProcessTriple());
    for (StringRef text : linuxTriples) {
      Triple triple(text);
      if (names.cpu == "generic"
              ? triple.getArch() == host.getArch()
              : llvm::is_contained(getCPUs(triple), StringRef(names.cpu)))
        return triple;
    }
    SmallVector<StringRef> known{"host"};
    for (StringRef text : linuxTriples)
      llvm::append_range(known, getCPUs(Triple(text)));
    return createStringError(
        "expected the CPU 'host', or one of x86_64, aarch64 or riscv64 that "
        "LLVM knows (see llc -mtriple=x86_64 -mcpu=help), got '" +
        names.cpu + "'" + suggestNearName(names.cpu, known));
  }
  Triple triple(Triple::normalize(names.triple));
  // Object files and headers are written for ELF only.
  if (getCPUs(triple).empty() || !triple.isOSBinFormatELF())
    return createStringError("expected the triple of an x86_64, aarch64, arm, "
                             "thumb, riscv64 or riscv32 system with ELF "
                             "objects, such as " +
                             llvm::join(llvm::ArrayRef(linuxTriples), " or ") +
                             ", got '" + names.triple + "'");
  return triple;
}

/// LLVM would take an unknown CPU as "generic" and print a warning.
static Error checkCPU(const Triple &triple, StringRef cpu) {
  if (llvm::is_contained(getCPUs(triple), cpu))
    return Error::success();
  return createStringError("expected a CPU of '" + triple.str() +
                           "' (see llc -mtriple=" + triple.getArchName() +
                           " -mcpu=help), got '" + cpu + "'" +
                           suggestNearName(cpu, getCPUs(triple)));
}

/// LLVM would ignore unknown features with a warning: code without them would
/// be slow, or fail on a machine that lacks what was to be left out.
static Error checkFeatures(const llvm::MCSubtargetInfo &info,
                           StringRef features) {
  for (StringRef feature : llvm::split(features, ',')) {
    if (feature.empty())
      continue;
    bool known = feature.starts_with("+") || feature.starts_with("-");
    known = known && llvm::any_of(info.getAllProcessorFeatures(),
                                  [&](const llvm::SubtargetFeatureKV &entry) {
                                    return feature.drop_front() == entry.Key;
                                  });
    if (known)
      continue;
    SmallVector<StringRef> names;
    for (const llvm::SubtargetFeatureKV &entry : info.getAllProcessorFeatures())
      names.push_back(entry.Key);
    StringRef name = feature.ltrim("+-");
    return createStringError(
        "expected features of '" + info.getTargetTriple().str() +
        "' with '+' or '-' before each (see llc -mtriple=" +
        info.getTargetTriple().getArchName() + " -mattr=help), got '" +
        feature + "'" +
        // A known name means that its sign is what is missing.
        (llvm::is_contained(names, name) ? "" : suggestNearName(name, names)));
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

/// The level 2 cache of one core in KiB, where it is not the usual 512.
static int64_t getLevel2KiB(StringRef cpu) {
  static constexpr std::pair<StringRef, int64_t> table[] = {
      {"apple-m1", 3072},       {"broadwell", 256},
      {"cascadelake", 1024},    {"cooperlake", 1024},
      {"cortex-a72", 256},      {"emeraldrapids", 2048},
      {"graniterapids", 2048},  {"haswell", 256},
      {"ivybridge", 256},       {"neoverse-n1", 1024},
      {"neoverse-n2", 1024},    {"neoverse-v1", 1024},
      {"neoverse-v2", 2048},    {"sandybridge", 256},
      {"sapphirerapids", 2048}, {"skylake", 256},
      {"skylake-avx512", 1024}, {"x86-64-v4", 1024},
      {"znver4", 1024},         {"znver5", 1024}};
  for (auto [name, size] : table)
    if (name == cpu)
      return size;
  return 512;
}

/// Whether two operations on 512 bits begin per cycle: on Intel's servers and
/// AMD's cores from Zen 5 on. Elsewhere such vectors are halved, or there is
/// one unit for them. A virtual machine may have a server's instructions under
/// another name.
static bool hasWideArithmetic(StringRef cpu,
                              const llvm::MCSubtargetInfo &info) {
  static constexpr StringRef wide[] = {"cascadelake",    "cooperlake",
                                       "diamondrapids",  "emeraldrapids",
                                       "graniterapids",  "graniterapids-d",
                                       "icelake-server", "sapphirerapids",
                                       "skylake-avx512", "skx",
                                       "znver5"};
  return info.getTargetTriple().isX86() &&
         // Only servers from Sapphire Rapids on have AMX, and these have two
         // units for 512 bits, whatever name a hypervisor reports.
         (llvm::is_contained(wide, cpu) || info.checkFeatures("+amx-tile"));
}

/// Whether one instruction multiplies and adds, which is a call elsewhere.
static bool hasFMA(const Triple &triple, const llvm::MCSubtargetInfo &info) {
  // AVX-512 has its own multiply-adds and does not imply the feature FMA.
  if (triple.isX86())
    return info.checkFeatures("+fma") || info.checkFeatures("+avx512f");
  if (triple.isARM() || triple.isThumb())
    return info.checkFeatures("+vfp4d16sp");
  return triple.isAArch64() || info.checkFeatures("+f");
}

/// The vectors of int8 that one instruction multiplies.
static int64_t getByteDotBits(const Triple &triple,
                              const llvm::MCSubtargetInfo &info) {
  // `usdot` is part of i8mm; plain `sdot` multiplies signed by signed bytes
  // only.
  if (triple.isAArch64())
    return info.checkFeatures("+i8mm") ? 128 : 0;
  if (!triple.isX86())
    return 0;
  // `vpdpbusd`, also on 128 and 256 bits with VL; AVX-VNNI has the same
  // instruction without AVX-512.
  if (info.checkFeatures("+avx512vnni,+avx512vl"))
    return 512;
  return info.checkFeatures("+avxvnni") ? 256 : 0;
}

/// The widest vectors of f32 that an instruction adds products of bf16 to.
static int64_t getBFloatDotBits(const Triple &triple,
                                const llvm::MCSubtargetInfo &info) {
  if (triple.isAArch64())
    return info.checkFeatures("+bf16") ? 128 : 0;
  return triple.isX86() && info.checkFeatures("+avx512bf16,+avx512vl") ? 512
                                                                       : 0;
}

/// The widest vectors of i32 that an instruction adds products of i16 to:
/// `vpmaddwd` and an addition. Arm's widening multiplications take one product
/// to each sum.
static int64_t getShortDotBits(const Triple &triple,
                               const llvm::MCSubtargetInfo &info) {
  if (!triple.isX86() || getByteDotBits(triple, info) > 0)
    return 0;
  if (info.checkFeatures("+avx512bw"))
    return 512;
  return info.checkFeatures("+avx2") ? 256 : 128;
}

/// Asks the system for the caches of this machine.
static void measureCaches(Target &target) {
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0)
    target.l1Bytes = bytes;
  if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
    target.l2Bytes = bytes;
#endif
}

/// The width and number of the registers, as LLVM's own vectorizers see them.
static Error describeRegisters(Target &target) {
  auto machine = createTargetMachine(target, /*optLevel=*/2, /*jit=*/false);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  llvm::Module module("", context);
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  auto *function = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), false),
      llvm::Function::ExternalLinkage, "", module);
  // Some CPUs with 512 bits prefer 256 for short loops; ours are long.
  // The attribute counts for the cost tables asked below.
  function->addFnAttr("prefer-vector-width", "512");
  llvm::TargetTransformInfo info =
      (*machine)->getTargetTransformInfo(*function);
  auto bits =
      info.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector);
  // Without vectors, LLVM takes these apart.
  target.vectorBits = std::max<int64_t>(128, bits.getFixedValue());
  auto *vectorType = llvm::FixedVectorType::get(llvm::Type::getFloatTy(context),
                                                target.vectorBits / 32);
  // Fewer than 16 would leave no tile that is worth its loads; LLVM spills
  // then.
  target.vectorRegisters = std::max<int64_t>(
      16, info.getNumberOfRegisters(
              info.getRegisterClassForType(/*Vector=*/true, vectorType)));
  return Error::success();
}

/// Whether floats are passed in registers of their own.
static bool isHardFloat(const Triple &triple) {
  return triple.getEnvironment() == Triple::EABIHF ||
         triple.getEnvironment() == Triple::GNUEABIHF ||
         triple.getEnvironment() == Triple::MuslEABIHF;
}

/// Features that the CPU "generic" lacks and every CPU of the triple has.
static StringRef getImpliedFeatures(const Triple &triple) {
  if (!isHardFloat(triple))
    return "";
  return triple.isThumb() ? "+vfp4d16sp" : "+vfp3d16";
}

/// `getTarget` without the cache of results: checks the names first, so that
/// errors name what the user wrote, then describes the CPU.
static Expected<Target> lookUpTarget(const TargetNames &names) {
  Expected<Triple> triple = chooseTriple(names);
  if (!triple)
    return triple.takeError();
  initializeLLVM(*triple);
  Target target;
  target.triple = triple->str();
  target.features = names.features;
  bool isHost = names.cpu == "host";
  if (isHost) {
    // "host" with the triple of another architecture: the check finds no such
    // CPU there and lists those that there are.
    if (triple->getArch() != Triple(llvm::sys::getProcessTriple()).getArch())
      return checkCPU(*triple, names.cpu);
    target.cpu = llvm::sys::getHostCPUName().str();
    llvm::SubtargetFeatures features;
    for (auto &[feature, enabled] : llvm::sys::getHostCPUFeatures())
      features.AddFeature(feature, enabled);
    // `getHostCPUFeatures` has the order of a hash table; the text is part of
    // cache keys and of object files, so it has to be the same each time.
    std::vector<std::string> sorted = features.getFeatures();
    llvm::sort(sorted, [](StringRef a, StringRef b) {
      return a.drop_front() < b.drop_front();
    });
    target.features = llvm::join(sorted, ",");
    if (!names.features.empty())
      // After those of the host: of two mentions of a feature the later one
      // counts.
      target.features += (target.features.empty() ? "" : ",") + names.features;
  } else {
    if (Error error = checkCPU(*triple, names.cpu))
      return error;
    target.cpu = names.cpu;
    StringRef implied = getImpliedFeatures(*triple);
    if (target.cpu == "generic" && !implied.empty())
      target.features =
          (implied + (names.features.empty() ? "" : ",") + names.features)
              .str();
  }

  std::string message;
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(*triple, message);
  if (!llvmTarget)
    return createStringError(message);
  // Without CPU and features, so that LLVM does not print its own complaint
  // about names that are yet to be checked.
  std::unique_ptr<llvm::MCSubtargetInfo> plain(
      llvmTarget->createMCSubtargetInfo(*triple, "", ""));
  if (Error error = checkFeatures(*plain, names.features))
    return error;
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      llvmTarget->createMCSubtargetInfo(*triple, target.cpu, target.features));
  // Small processors may have no arithmetic of floats: the compiler's library
  // has it.
  StringRef needed = triple->isX86()        ? "+64bit,+sse2"
                     : triple->isAArch64()  ? "+neon"
                     : triple->isRISCV64()  ? "+f,+d"
                     : isHardFloat(*triple) ? "+vfp2sp"
                                            : "";
  // The host has at least what this program was compiled for.
  if (!isHost && !info->checkFeatures(needed))
    return createStringError("expected a target with the features '" + needed +
                             "', got '" + target.cpu + "' with '" +
                             target.features + "'");
  target.hasFMA = hasFMA(*triple, *info);
  if (hasWideArithmetic(target.cpu, *info))
    target.arithmeticBits = 512;
  target.byteDotBits = getByteDotBits(*triple, *info);
  target.bfloatDotBits = getBFloatDotBits(*triple, *info);
  target.shortDotBits = getShortDotBits(*triple, *info);
  target.l2Bytes = getLevel2KiB(target.cpu) << 10;
  // The table has the usual machine; the system knows this one.
  if (isHost)
    measureCaches(target);
  if (Error error = describeRegisters(target))
    return error;
  return target;
}

Expected<Target> kas::getTarget(const TargetNames &names) {
  // A compilation asks twice, a search compiles thousands of times.
  static std::mutex mutex;
  static std::map<std::array<std::string, 3>, Target> known;
  std::array<std::string, 3> key{names.cpu, names.triple, names.features};
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Expected<Target> target = lookUpTarget(names);
  // Errors are not kept: they are rare, and their names unbounded.
  if (target)
    known.emplace(std::move(key), *target);
  return target;
}

Expected<std::unique_ptr<llvm::TargetMachine>>
kas::createTargetMachine(const Target &target, unsigned optLevel, bool jit) {
  Triple triple(target.triple);
  initializeLLVM(triple);
  std::string message;
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!llvmTarget)
    return createStringError(message);
  llvm::TargetOptions options;
  // Objects say what their functions take of the stack.
  options.EmitStackSizeSection = !jit;
  // Multiply-adds may be contracted. Results then depend on the target, within
  // the rounding that tests allow.
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  std::optional<llvm::Reloc::Model> relocation;
  // Without a system nothing moves a program.
  if (!jit)
    relocation = triple.getOS() == Triple::UnknownOS ? llvm::Reloc::Static
                                                     : llvm::Reloc::PIC_;
  // Levels above 3 mean 3, as with compilers of C.
  auto level = llvm::CodeGenOpt::getLevel(std::min(optLevel, 3u))
                   .value_or(llvm::CodeGenOptLevel::Aggressive);
  return std::unique_ptr<llvm::TargetMachine>(llvmTarget->createTargetMachine(
      triple, target.cpu, target.features, options, relocation, std::nullopt,
      level, jit));
}
