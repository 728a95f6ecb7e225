//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Support/ChildProcess.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <csignal>
#include <fstream>
#include <thread>
#include <unistd.h>

using namespace kas;
using Clock = ChildProcess::Clock;

static Clock::time_point inMilliseconds(int count) {
  return Clock::now() + std::chrono::milliseconds(count);
}

static std::unique_ptr<ChildProcess> start(llvm::StringRef command,
                                           uint64_t memoryLimit = 0) {
  return llvm::cantFail(ChildProcess::start({command.str(), memoryLimit, 7}));
}

static std::string getError(llvm::Expected<std::string> result) {
  return result ? "" : llvm::toString(result.takeError());
}

/// A process that was killed is gone, or waits for its parent to notice.
static bool hasEnded(pid_t pid) {
  for (int attempt = 0; attempt < 2000; ++attempt) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    if (!(file >> id >> name >> state) || state == "Z")
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(ChildProcess, AnswersLines) {
  auto child = start("echo $KAS_WORKER; cat");
  EXPECT_EQ(llvm::cantFail(child->readLine(inMilliseconds(10000))), "7");
  llvm::cantFail(child->write("one\r\ntwo\nth", inMilliseconds(10000)));
  llvm::cantFail(child->write("ree\n", inMilliseconds(10000)));
  for (const char *line : {"one", "two", "three"})
    EXPECT_EQ(llvm::cantFail(child->readLine(inMilliseconds(10000))), line);
  EXPECT_EQ(getError(child->readLine(inMilliseconds(20))),
            "the worker does not answer in time");
  EXPECT_FALSE(child->endsUntil(inMilliseconds(1)));
}

TEST(ChildProcess, SaysHowItEnded) {
  auto deadline = inMilliseconds(20000);
  auto child = start("exit 3");
  EXPECT_TRUE(child->endsUntil(deadline));
  EXPECT_EQ(getError(child->readLine(deadline)),
            "the worker ended with code 3");
  EXPECT_EQ(llvm::toString(child->write(std::string(1 << 20, 'a'), deadline)),
            "the worker ended with code 3");
  EXPECT_EQ(getError(start("kill -KILL $$")->readLine(deadline)),
            "the worker died: Killed");
  EXPECT_EQ(getError(start("exec >&-; sleep 100")->readLine(deadline)),
            "the worker has closed its output");
}

TEST(ChildProcess, IsNoFloodAndNoSink) {
  EXPECT_EQ(
      getError(start("yes | tr -d '\\n'")->readLine(inMilliseconds(60000))),
      "the worker writes a line without end");
  EXPECT_EQ(llvm::toString(
                start("sleep 100")
                    ->write(std::string(1 << 24, 'a'), inMilliseconds(20))),
            "the worker does not read what it is sent");
}

TEST(ChildProcess, HasALimitOfMemory) {
  auto child = start("ulimit -v", 100);
  EXPECT_EQ(llvm::cantFail(child->readLine(inMilliseconds(10000))), "102400");
}

TEST(ChildProcess, TakesItsGroupWithIt) {
  auto child = start("sleep 1000 & echo $!; wait");
  pid_t pid = 0;
  ASSERT_TRUE(llvm::to_integer(
      llvm::cantFail(child->readLine(inMilliseconds(10000))), pid));
  ASSERT_EQ(::kill(pid, 0), 0);
  child.reset();
  EXPECT_TRUE(hasEnded(pid));
}

TEST(ChildProcess, ReadsAll) {
  auto child = start("echo a; echo b");
  EXPECT_EQ(llvm::cantFail(child->readAll(inMilliseconds(10000))), "a\nb\n");
  EXPECT_EQ(llvm::cantFail(start("yes")->readAll(inMilliseconds(20))),
            std::nullopt);
}

TEST(RunForked, ReturnsBytesOrTheError) {
  std::string bytes = std::string(1 << 20, 'a') + '\0' + "+-";
  EXPECT_EQ(llvm::cantFail(
                runForked([&] { return llvm::Expected<std::string>(bytes); })),
            bytes);
  EXPECT_EQ(
      llvm::cantFail(runForked([] { return llvm::Expected<std::string>(""); })),
      "");
  EXPECT_EQ(getError(runForked([]() -> llvm::Expected<std::string> {
              return llvm::createStringError("no such thing");
            })),
            "no such thing");
}

TEST(RunForked, OutlivesItsWork) {
  auto raise = [](int number) {
    return [number]() -> llvm::Expected<std::string> {
      ::raise(number);
      return "";
    };
  };
  EXPECT_EQ(getError(runForked(raise(SIGSEGV))),
            "the worker died: Segmentation fault");
  EXPECT_EQ(getError(runForked(raise(SIGABRT))), "the worker died: Aborted");
  EXPECT_EQ(
      getError(runForked([]() -> llvm::Expected<std::string> { ::_exit(1); })),
      "the worker ended without an answer");
  auto start = Clock::now();
  EXPECT_EQ(getError(runForked(
                []() -> llvm::Expected<std::string> {
                  ::sleep(1000);
                  return "";
                },
                {.seconds = 0.1})),
            "expected an end within 0.10 s, got none");
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(100));
}

TEST(RunForked, TakesTheGroupOfItsWork) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t pid = 0;
  EXPECT_NE(getError(runForked(
                [&]() -> llvm::Expected<std::string> {
                  pid_t child = ::fork();
                  if (child > 0)
                    EXPECT_EQ(::write(ends[1], &child, sizeof(child)),
                              ssize_t(sizeof(child)));
                  ::sleep(1000);
                  return "";
                },
                {.seconds = 0.5})),
            "");
  ASSERT_EQ(::read(ends[0], &pid, sizeof(pid)), ssize_t(sizeof(pid)));
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_TRUE(hasEnded(pid));
}
