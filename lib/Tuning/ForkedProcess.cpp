//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Tuning/ForkedProcess.h"
#include "llvm/Support/FormatVariadic.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using Clock = std::chrono::steady_clock;

static void writeAll(int output, llvm::StringRef text) {
  while (!text.empty()) {
    ssize_t count = ::write(output, text.data(), text.size());
    if (count < 0 && errno != EINTR)
      return;
    if (count > 0)
      text = text.drop_front(static_cast<size_t>(count));
  }
}

/// Ends the process.
[[noreturn]] static void
runWork(int output, llvm::function_ref<Expected<std::string>()> work,
        const kas::tuning::ProcessLimits &limits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Stack traces and messages of candidates are of no use to anybody.
  for (int stream : {STDOUT_FILENO, STDERR_FILENO})
    if (int null = ::open("/dev/null", O_WRONLY); null >= 0)
      ::dup2(null, stream);
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP})
    ::signal(number, SIG_DFL);
  rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (limits.memory) {
    rlimit memory = {limits.memory, limits.memory};
    ::setrlimit(RLIMIT_AS, &memory);
  }
  // The first byte tells answers and errors apart.
  Expected<std::string> answer = work();
  writeAll(output,
           answer ? "+" + *answer : "-" + llvm::toString(answer.takeError()));
  ::_exit(0);
}

/// All that comes until the end; nothing when `deadline` comes first.
static std::optional<std::string> readAll(int input,
                                          Clock::time_point deadline) {
  std::string text;
  for (;;) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0)
      return std::nullopt;
    pollfd request = {input, POLLIN, 0};
    int ready = ::poll(&request, 1,
                       static_cast<int>(std::min<int64_t>(left.count(), 1000)));
    if (ready <= 0)
      continue;
    char block[4096];
    ssize_t count = ::read(input, block, sizeof(block));
    if (count == 0)
      return text;
    if (count > 0)
      text.append(block, static_cast<size_t>(count));
    else if (errno != EINTR)
      return text;
  }
}

Expected<std::string>
kas::tuning::runForked(llvm::function_ref<Expected<std::string>()> work,
                       const ProcessLimits &limits) {
  auto fail = [] {
    return createStringError(std::string("cannot start a worker: ") +
                             ::strerror(errno));
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC))
    return fail();
  pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    runWork(ends[1], work, limits);
  }
  Error failure = child < 0 ? fail() : Error::success();
  ::close(ends[1]);
  if (failure) {
    ::close(ends[0]);
    return failure;
  }
  auto deadline =
      Clock::now() +
      std::chrono::milliseconds(static_cast<int64_t>(limits.seconds * 1e3));
  std::optional<std::string> text = readAll(ends[0], deadline);
  ::close(ends[0]);
  if (!text)
    ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (!text)
    return createStringError(llvm::formatv(
        "expected an end within {0} s, got none", limits.seconds));
  llvm::StringRef answer = *text;
  if (answer.consume_front("-"))
    return createStringError(answer.trim());
  if (WIFEXITED(status) && answer.consume_front("+"))
    return answer.str();
  if (WIFSIGNALED(status))
    return createStringError(std::string("the worker died: ") +
                             ::strsignal(WTERMSIG(status)));
  return createStringError("the worker ended without an answer");
}
