//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The version of the dialect in bytecode. Attributes and types keep the textual
// form: they are few, and shared by all operations of a module.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Bytecode/BytecodeImplementation.h"

using namespace kas;
using namespace mlir;

namespace {
/// A newer major version has what this program cannot read; a newer minor one
/// only what it can ignore.
struct KasVersion : DialectVersion {
  uint64_t majorVersion, minorVersion;
  KasVersion(uint64_t first, uint64_t second)
      : majorVersion(first), minorVersion(second) {}
};

constexpr uint64_t currentMajor = 1, currentMinor = 0;

/// The version is written once per module that has ops of the dialect.
struct KasBytecodeInterface : BytecodeDialectInterface {
  KasBytecodeInterface(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override {
    writer.writeVarInt(currentMajor);
    writer.writeVarInt(currentMinor);
  }

  // A null version makes the reader fail.
  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const override {
    uint64_t first = 0, second = 0;
    if (failed(reader.readVarInt(first)) || failed(reader.readVarInt(second)))
      return nullptr;
    if (first > currentMajor) {
      reader.emitError() << "requires version " << currentMajor
                         << ".x of dialect kas, got " << first << "." << second
                         << ", which a newer kas wrote";
      return nullptr;
    }
    return std::make_unique<KasVersion>(first, second);
  }
};
} // namespace

void KasDialect::registerBytecode() { addInterfaces<KasBytecodeInterface>(); }
