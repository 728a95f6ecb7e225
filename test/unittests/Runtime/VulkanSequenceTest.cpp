//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is recorded of launches and sequences on Vulkan: barriers where a
// command needs another one, and launches once. The layer validates
// synchronization.
//
//===----------------------------------------------------------------------===//

#include "VulkanTest.h"

namespace {

class VulkanSequenceTest : public VulkanDeviceTest {
protected:
  void SetUp() override {
    VulkanDeviceTest::SetUp();
    std::vector<float> ones(64, 1);
    ASSERT_SUCCESS(kasRtBufferFill(buffer, 0));
    ASSERT_SUCCESS(kasRtBufferWrite(buffer, 0, ones.data(), bytes));
  }
  int countBarriers() { return driver->countCalls("vkCmdPipelineBarrier"); }
  /// The kernel `twice` of the arrays with these numbers.
  KasRtStatus launchTwice(uint64_t from, uint64_t to) {
    const KasRtArgument arguments[] = {get(from), get(to)};
    return kasRtLaunch(twice, &size, arguments, 2);
  }
  KasRtStatus launchAdd(uint64_t a, uint64_t b, uint64_t to) {
    const KasRtArgument arguments[] = {get(a), get(b), get(to)};
    return kasRtLaunch(add, &size, arguments, 3);
  }
  void expectArray(uint64_t number, float value) {
    std::vector<float> read(64);
    EXPECT_SUCCESS(kasRtBufferRead(buffer, number * bytes, read.data(), bytes));
    EXPECT_EQ(read, std::vector<float>(64, value));
  }
  /// Array 1 becomes two times array 0, array 2 their sum.
  KasRtSequence createSequence() {
    const KasRtArgument first[] = {get(0), get(1)},
                        second[] = {get(0), get(1), get(2)};
    const KasRtStep steps[] = {{twice, size, first, 2}, {add, size, second, 3}};
    KasRtSequence sequence = nullptr;
    EXPECT_SUCCESS(kasRtSequenceCreate(device, steps, 2, &sequence));
    return sequence;
  }
};

} // namespace

TEST_F(VulkanSequenceTest, OverlapsKernelsThatDoNotDependOnEachOther) {
  int before = countBarriers();
  // Both read array 0.
  EXPECT_SUCCESS(launchTwice(0, 1));
  EXPECT_SUCCESS(launchTwice(0, 2));
  EXPECT_EQ(countBarriers(), before);
  // One at the end, for the host.
  EXPECT_SUCCESS(kasRtSynchronize(device));
  EXPECT_EQ(countBarriers(), before + 1);
  expectArray(1, 2);
  expectArray(2, 2);
}

TEST_F(VulkanSequenceTest, WaitsForWhatAKernelReads) {
  int before = countBarriers();
  EXPECT_SUCCESS(launchTwice(0, 1));
  EXPECT_SUCCESS(launchTwice(1, 2));
  EXPECT_EQ(countBarriers(), before + 1);
  expectArray(2, 4);
}

TEST_F(VulkanSequenceTest, WaitsForWhatIsOverwritten) {
  EXPECT_SUCCESS(launchTwice(0, 1));
  EXPECT_SUCCESS(kasRtSynchronize(device));
  int before = countBarriers();
  // Written after it was read, and written twice.
  EXPECT_SUCCESS(launchTwice(1, 2));
  EXPECT_SUCCESS(launchTwice(0, 1));
  EXPECT_EQ(countBarriers(), before + 1);
  EXPECT_SUCCESS(launchTwice(0, 1));
  EXPECT_EQ(countBarriers(), before + 2);
  expectArray(2, 4);
}

/// A buffer of which the module does not say that it is not written may be.
TEST_F(VulkanSequenceTest, WaitsForWhatMayBeWritten) {
  int before = countBarriers();
  EXPECT_SUCCESS(launchAdd(0, 0, 1));
  EXPECT_SUCCESS(launchAdd(0, 0, 2));
  EXPECT_EQ(countBarriers(), before + 1);
  expectArray(2, 2);
}

TEST_F(VulkanSequenceTest, OrdersCopiesAndKernels) {
  EXPECT_SUCCESS(launchTwice(0, 1));
  EXPECT_SUCCESS(kasRtBufferFill(buffer, 0x40400000));
  EXPECT_SUCCESS(launchTwice(0, 1));
  EXPECT_SUCCESS(kasRtBufferFill(buffer, 0x3f800000));
  EXPECT_SUCCESS(launchTwice(0, 2));
  expectArray(1, 1);
  expectArray(2, 2);
}

TEST_F(VulkanSequenceTest, RecordsASequenceOnce) {
  int barriers = countBarriers();
  KasRtSequence sequence = createSequence();
  ASSERT_TRUE(sequence);
  EXPECT_EQ(countBarriers(), barriers + 1);
  int dispatches = driver->countCalls("vkCmdDispatch");
  int sets = driver->countCalls("vkAllocateDescriptorSets");
  EXPECT_EQ(dispatches, 2);
  for (int i = 0; i < 3; ++i) {
    // Twice before the device has to be done.
    EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
    EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
    expectArray(1, 2);
    expectArray(2, 3);
  }
  EXPECT_EQ(driver->countCalls("vkCmdDispatch"), dispatches);
  EXPECT_EQ(driver->countCalls("vkAllocateDescriptorSets"), sets);
  EXPECT_EQ(driver->countCalls("vkCmdExecuteCommands"), 6);
  // Between the two of each pair, and at the end of each.
  EXPECT_EQ(countBarriers(), barriers + 1 + 3 * 2);
  EXPECT_SUCCESS(kasRtSequenceDestroy(sequence));
}

/// What a sequence computes follows what was started before it, and precedes
/// what comes after.
TEST_F(VulkanSequenceTest, OrdersSequencesAndLaunches) {
  KasRtSequence sequence = createSequence();
  ASSERT_TRUE(sequence);
  EXPECT_SUCCESS(kasRtBufferFill(buffer, 0x40000000));
  EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
  EXPECT_SUCCESS(launchTwice(2, 0));
  EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
  expectArray(0, 12);
  expectArray(2, 36);
  // Destroyed while it may still run.
  EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
  EXPECT_SUCCESS(kasRtSequenceDestroy(sequence));
}

/// More launches than are recorded for one submission.
TEST_F(VulkanSequenceTest, TakesManyLaunches) {
  const KasRtArgument arguments[] = {get(0), get(1), get(1)};
  std::vector<KasRtStep> steps(1500, KasRtStep{add, size, arguments, 3});
  KasRtSequence sequence = nullptr;
  ASSERT_SUCCESS(kasRtSequenceCreate(
      device, steps.data(), static_cast<uint32_t>(steps.size()), &sequence));
  EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
  EXPECT_SUCCESS(kasRtSequenceLaunch(sequence));
  expectArray(1, 3000);
  EXPECT_SUCCESS(kasRtSequenceDestroy(sequence));
}

TEST_F(VulkanSequenceTest, RefusesSequences) {
  const KasRtArgument arguments[] = {get(0), get(1)};
  KasRtStep step = {twice, {{2, 1, 1}, {16, 1, 1}, 0}, arguments, 2};
  KasRtSequence sequence = nullptr;
  expectError(kasRtSequenceCreate(device, &step, 1, &sequence),
              KAS_RT_ERROR_INVALID_ARGUMENT,
              "expected the 32 threads along x that kernel 'twice' is compiled "
              "for, got 16");
  EXPECT_EQ(sequence, nullptr);
}
