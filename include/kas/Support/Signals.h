//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tools do about signals.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_SIGNALS_H
#define KAS_SUPPORT_SIGNALS_H

namespace kas {

/// Lets writes beyond the largest size of a file (`ulimit -f`) fail as on a
/// full disk, so that whoever writes reports it. LLVM's handlers, which this
/// installs first, would dump the stack. Call it first in `main`.
void ignoreFileSizeSignal();

} // namespace kas

#endif // KAS_SUPPORT_SIGNALS_H
