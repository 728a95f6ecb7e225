//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GuardedMemory.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

using namespace kas::test;

namespace {

/// One buffer: its pages have a guard page on both sides.
struct Block {
  char *pages;
  size_t numBytes, size;
};

std::mutex mutex;
std::map<char *, Block> blocks;
std::atomic<Flush> allocatorFlush;

} // namespace

static size_t getPageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

static void *allocateAligned(size_t alignment, size_t size, Flush flush) {
  size_t page = getPageSize();
  // Nothing needs no page, but an address.
  size_t inner = llvm::alignTo(size, page);
  void *mapped = ::mmap(nullptr, inner + 2 * page, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    llvm::report_fatal_error("no memory for guarded buffers");
  char *pages = static_cast<char *>(mapped) + page;
  if (inner && ::mprotect(pages, inner, PROT_READ | PROT_WRITE))
    llvm::report_fatal_error("guarded memory cannot be made writable");
  std::memset(pages, 0xff, inner);
  size_t offset =
      flush == Flush::Begin ? 0 : llvm::alignDown(inner - size, alignment);
  std::lock_guard<std::mutex> lock(mutex);
  blocks[pages + offset] = {pages, inner, size};
  return pages + offset;
}

void *kas::test::allocateGuarded(size_t size, Flush flush) {
  return allocateAligned(1, size, flush);
}

void kas::test::freeGuarded(void *pointer) {
  if (!pointer)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = blocks.find(static_cast<char *>(pointer));
  if (found == blocks.end())
    llvm::report_fatal_error("freed what was not allocated");
  size_t page = getPageSize();
  ::munmap(found->second.pages - page, found->second.numBytes + 2 * page);
  blocks.erase(found);
}

void kas::test::makeReadOnly(void *pointer) {
  std::lock_guard<std::mutex> lock(mutex);
  const Block &block = blocks.at(static_cast<char *>(pointer));
  if (block.numBytes && ::mprotect(block.pages, block.numBytes, PROT_READ))
    llvm::report_fatal_error("guarded memory cannot be made read-only");
}

size_t kas::test::getNumGuarded() {
  std::lock_guard<std::mutex> lock(mutex);
  return blocks.size();
}

static void *guardedMalloc(size_t size) {
  return allocateAligned(1, size, allocatorFlush);
}

/// LLVM makes it of `malloc` and zeros.
static void *guardedCalloc(size_t count, size_t size) {
  void *result = allocateAligned(1, count * size, allocatorFlush);
  std::memset(result, 0, count * size);
  return result;
}

static void *guardedAlignedAlloc(size_t alignment, size_t size) {
  return allocateAligned(alignment, size, allocatorFlush);
}

std::vector<std::pair<std::string, void *>>
kas::test::getGuardedAllocators(Flush flush) {
  allocatorFlush = flush;
  return {{"malloc", reinterpret_cast<void *>(&guardedMalloc)},
          {"calloc", reinterpret_cast<void *>(&guardedCalloc)},
          {"aligned_alloc", reinterpret_cast<void *>(&guardedAlignedAlloc)},
          {"free", reinterpret_cast<void *>(&freeGuarded)}};
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
thread_local sigjmp_buf *returnPoint = nullptr;
void *touched = nullptr;
} // namespace

void RemoveAlignment::runBeforePass(mlir::Pass *pass, mlir::Operation *op) {
  if (pass->getArgument() == "finalize-memref-to-llvm")
    op->walk([](mlir::memref::AllocOp alloc) { alloc.removeAlignmentAttr(); });
}

/// Says where `address` is. Compiled code does not hold the lock.
static std::string describe(char *address) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t page = getPageSize();
  for (const auto &[begin, block] : blocks) {
    if (address < block.pages - page ||
        address >= block.pages + block.numBytes + page)
      continue;
    std::string buffer =
        " a buffer of " + std::to_string(block.size) + " bytes";
    char *end = begin + block.size;
    if (address < begin)
      return std::to_string(begin - address) + " bytes before" + buffer;
    if (address >= end)
      return std::to_string(address - end) + " bytes past the end of" + buffer;
    return "a write at byte " + std::to_string(address - begin) + " of" +
           buffer + " that is only read";
  }
  return "an address that belongs to no buffer";
}

static void handleFault(int, siginfo_t *information, void *) {
  if (!returnPoint) {
    static const char message[] = "guard page touched outside of a test\n";
    (void)!::write(STDERR_FILENO, message, sizeof(message) - 1);
    ::_exit(1);
  }
  touched = information->si_addr;
  siglongjmp(*returnPoint, 1);
}

std::optional<std::string>
kas::test::runGuarded(llvm::function_ref<void()> function) {
  struct sigaction action = {}, before[2];
  action.sa_sigaction = handleFault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, &before[0]);
  ::sigaction(SIGBUS, &action, &before[1]);
  sigjmp_buf point;
  bool failed = sigsetjmp(point, /*savemask=*/1) != 0;
  if (!failed) {
    returnPoint = &point;
    function();
  }
  returnPoint = nullptr;
  ::sigaction(SIGSEGV, &before[0], nullptr);
  ::sigaction(SIGBUS, &before[1], nullptr);
  if (failed)
    return describe(static_cast<char *>(touched));
  return std::nullopt;
}
