//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Aligns large blocks to huge pages, and asks for these.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/Pages.h"
#include <cstdlib>
#include <sys/mman.h>

/// Of x86 and, with pages of 4 KB, of AArch64.
static constexpr size_t hugePage = size_t(2) << 20;

void *kas::execution::allocatePages(size_t size) {
  constexpr size_t line = 64;
  // `aligned_alloc` needs a multiple of the alignment.
  if (size > size_t(-1) - hugePage)
    return nullptr;
  if (size < hugePage)
    return std::aligned_alloc(line, (size + line - 1) / line * line);
  void *pointer = nullptr;
  // Not rounded up to whole pages: what follows is for other blocks.
  if (posix_memalign(&pointer, hugePage, size) != 0)
    return nullptr;
#ifdef MADV_HUGEPAGE
  // Only a wish: without it the memory is as good as any.
  (void)madvise(pointer, size / hugePage * hugePage, MADV_HUGEPAGE);
#endif
  return pointer;
}
