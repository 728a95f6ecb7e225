//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translations of kas for kas-translate.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TARGET_OBJECTTRANSLATIONS_H
#define KAS_TARGET_OBJECTTRANSLATIONS_H

#include <functional>
#include <string>

namespace kas::target {

/// Registers `-kas-to-object`, from the LLVM dialect to an ELF object, and
/// `-kas-to-c-header`, from functions on tensors to their C declarations;
/// `getLowered` gives the path of the module that `-kas-cpu-pipeline` made of
/// them, or nothing.
void registerTranslations(std::function<std::string()> getLowered);

} // namespace kas::target

#endif // KAS_TARGET_OBJECTTRANSLATIONS_H
