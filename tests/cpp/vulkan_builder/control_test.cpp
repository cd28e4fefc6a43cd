// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace etvk_guard::vulkan {
namespace {

// A registry that does as it is told.
struct Fake {
  static inline std::string mismatch;
  static inline bool answers = true;  // with what was put into it
  static inline int puts = 0;
  static inline std::vector<std::string> logged;
  static inline int errors = 0;

  static std::string find_mismatch() { return mismatch; }
  static void put_ours() { ++puts; }
  static bool is_ours(const char*) { return puts > 0 && answers; }
  static void log(const char* line, bool is_error) {
    logged.emplace_back(line);
    errors += is_error ? 1 : 0;
  }
};

class ControlTest : public testing::Test {
 protected:
  void SetUp() override {
    Fake::mismatch.clear();
    Fake::answers = true;
    Fake::puts = Fake::errors = 0;
    Fake::logged.clear();
  }
  Control control{{&Fake::find_mismatch, &Fake::put_ours, &Fake::is_ours, &Fake::log}, {"1.2.3", true, 680, 60}};
};

TEST_F(ControlTest, StartInstallsAndSaysSoOnce) {
  EXPECT_FALSE(control.is_active());
  EXPECT_EQ(control.start(nullptr), State::kActive);
  EXPECT_TRUE(control.is_active());
  EXPECT_EQ(control.install(), State::kActive);
  EXPECT_EQ(Fake::puts, 1);
  ASSERT_EQ(Fake::logged.size(), 1u);
  EXPECT_NE(Fake::logged[0].find("in effect"), std::string::npos);
  EXPECT_EQ(Fake::errors, 0);
}

TEST_F(ControlTest, SwitchedOff) {
  for (const char* setting : {"off", "OFF", "Off", "0"}) {
    EXPECT_EQ(control.start(setting), State::kDisabled) << setting;
    EXPECT_FALSE(control.is_active()) << setting;
  }
  EXPECT_EQ(Fake::puts, 0);
  EXPECT_EQ(control.install(), State::kActive);  // asked for in so many words
}

TEST_F(ControlTest, OtherSettingsDoNotSwitchOff) {
  for (const char* setting : {"", "on", "1", "offf"}) {
    EXPECT_EQ(control.start(setting), State::kActive) << setting;
    control.uninstall();
  }
}

TEST_F(ControlTest, UninstallAndInstallAgain) {
  control.start(nullptr);
  EXPECT_EQ(control.uninstall(), State::kInactive);
  EXPECT_FALSE(control.is_active());
  EXPECT_EQ(control.uninstall(), State::kInactive);
  EXPECT_EQ(Fake::logged.size(), 2u);
  EXPECT_EQ(control.install(), State::kActive);
}

TEST_F(ControlTest, MismatchIsRefusedBeforeTheRegistryIsTouched) {
  Fake::mismatch = "sizes differ";
  EXPECT_EQ(control.start(nullptr), State::kRefused);
  EXPECT_EQ(Fake::puts, 0);
  EXPECT_EQ(Fake::errors, 1);
  EXPECT_NE(control.status().find("\"message\":\"sizes differ\""), std::string::npos);
  EXPECT_EQ(control.uninstall(), State::kRefused);
}

TEST_F(ControlTest, RegistryThatAnswersOtherwiseIsRefused) {
  Fake::answers = false;
  EXPECT_EQ(control.start(nullptr), State::kRefused);
  EXPECT_NE(control.status().find(kOps[0]), std::string::npos);
}

TEST_F(ControlTest, RefusedAtTheFirstNorm) {
  control.start(nullptr);
  control.refuse("sizes differ");
  EXPECT_FALSE(control.is_active());
  EXPECT_EQ(Fake::errors, 1);
}

TEST_F(ControlTest, StatusInFull) {
  control.start(nullptr);
  control.count(Path::kFusedRow);
  control.count(Path::kFusedRow);
  control.count(Path::kRefused);
  EXPECT_EQ(control.status(),
            "{\"state\":\"active\",\"message\":\"our norm builders are in effect in the Vulkan delegate\","
            "\"built\":{\"executorch\":\"1.2.3\",\"event_tracer\":true,\"compute_graph_bytes\":680},\"kernels\":60,"
            "\"sites\":{\"stock\":0,\"fused_row\":2,\"fused_batch\":0,\"fused_full\":0,\"unit\":0,\"unit_then_ops\":0,\"moved\":0,"
            "\"refused\":1},"
            "\"ops\":{\"et_vk.rms_norm.default\":true,\"aten.native_layer_norm.default\":true,"
            "\"aten.native_group_norm.default\":true,\"aten._native_batch_norm_legit_no_training.default\":true}}");
}

TEST_F(ControlTest, StatusEscapesTheMessage) {
  Fake::mismatch = "a \"b\" \\ c\nd\x01";
  control.start(nullptr);
  EXPECT_NE(control.status().find(R"("message":"a \"b\" \\ c\u000ad\u0001")"), std::string::npos);
}

TEST_F(ControlTest, ThreadsMayInstallAndUninstall) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (int step = 0; step < 200; ++step) {
        i % 2 == 0 ? control.install() : control.uninstall();
        control.count(Path::kStock);
        (void)control.status();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_NE(control.status().find("\"stock\":800"), std::string::npos);
  EXPECT_EQ(control.install(), State::kActive);
}

}  // namespace
}  // namespace etvk_guard::vulkan
