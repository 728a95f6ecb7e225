//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translations from and to MLIR: those of mlir-translate, and those of kas.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Features.h"
#include "kas/Support/Signals.h"
#include "kas/Support/Version.h"
#include "kas/Target/ObjectTranslations.h"
#include "kas/Target/Text.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#if KAS_ENABLE_GPU
#include "kas/Target/GPU/DeviceTranslations.h"
#endif

using llvm::StringRef;
namespace fs = llvm::sys::fs;

namespace {

/// The file of `-o`: the driver writes to another one beside it, which replaces
/// it in the end, so that a translation that fails leaves the old file as it
/// was.
class OutputArgument {
public:
  /// Finds the option and puts the other file's name in its place. Devices and
  /// pipes stay.
  std::error_code replace(llvm::SmallVectorImpl<const char *> &arguments) {
    for (size_t i = 1; i < arguments.size(); ++i) {
      StringRef text(arguments[i]);
      if (text == "--")
        break;
      bool isOption = text.consume_front("--") || text.consume_front("-");
      if (!isOption || !text.consume_front("o"))
        continue;
      bool isSeparate = text.empty() && i + 1 < arguments.size();
      if (!isSeparate && !text.consume_front("="))
        continue;
      path = isSeparate ? arguments[++i] : text.str();
      if (std::error_code error = chooseTemporary())
        return error;
      if (!temporary.empty()) {
        replacement = isSeparate ? temporary : "-o=" + temporary;
        arguments[i] = replacement.c_str();
      }
      break;
    }
    return {};
  }

  std::error_code keep() const {
    return temporary.empty() ? std::error_code()
                             : fs::rename(temporary, target);
  }

  StringRef getPath() const { return path; }

private:
  std::error_code chooseTemporary() {
    if (path.empty() || path == "-")
      return {};
    target = path;
    fs::file_status status;
    if (!fs::status(path, status)) {
      if (fs::is_directory(status))
        return std::make_error_code(std::errc::is_a_directory);
      if (!fs::is_regular_file(status))
        return {};
      llvm::SmallString<128> real;
      if (!fs::real_path(path, real))
        target = real.str();
    }
    llvm::SmallString<128> folder(target), unique;
    llvm::sys::path::remove_filename(folder);
    if (std::error_code error =
            fs::access(folder.empty() ? StringRef(".") : folder.str(),
                       fs::AccessMode::Write))
      return error;
    fs::createUniquePath(target + ".%%%%%%%%.tmp", unique,
                         /*MakeAbsolute=*/false);
    temporary = unique.str();
    return {};
  }

  std::string path, target, temporary, replacement;
};

} // namespace

static int reportUnwritable(StringRef path, std::error_code error) {
  llvm::WithColor::error(llvm::errs(), "kas-translate")
      << "cannot write '" << path << "': " << error.message() << "\n";
  return 1;
}

int main(int argc, char **argv) {
  kas::ignoreFileSizeSignal();
  kas::addVersionPrinter();
  mlir::registerAllTranslations();
  llvm::cl::opt<std::string> lowered(
      "kas-lowered",
      llvm::cl::desc("The module as lowered by -kas-cpu-pipeline, for "
                     "-kas-to-c-header: declares the functions that prepack "
                     "weights there"),
      llvm::cl::value_desc("lowered.mlir"));
  kas::target::registerTranslations([&] { return lowered.getValue(); });
  llvm::cl::opt<std::string> binding(
      "kas-bind",
      llvm::cl::desc("Values for the symbols of operators, for -kas-to-pytorch "
                     "and -kas-to-c"),
      llvm::cl::value_desc("N=1,C=64"));
  kas::target::registerTextTranslations([&] { return binding.getValue(); });
#if KAS_ENABLE_GPU
  kas::target::registerGPUTranslations();
#endif
  llvm::SmallVector<const char *> arguments(argv, argv + argc);
  OutputArgument output;
  if (std::error_code error = output.replace(arguments))
    return reportUnwritable(output.getPath(), error);
  if (failed(mlir::mlirTranslateMain(argc,
                                     const_cast<char **>(arguments.data()),
                                     "kas translation driver")))
    return 1;
  if (std::error_code error = output.keep())
    return reportUnwritable(output.getPath(), error);
  return 0;
}
