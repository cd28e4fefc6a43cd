// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace etvk_guard::harness {

std::string json_string(const std::string& text);
std::string json_number(double value);  // null if it is not finite

// An object or array, built member by member; members are JSON already.
class JsonObject {
 public:
  JsonObject& add(const std::string& name, const std::string& text);
  JsonObject& add(const std::string& name, const char* text) { return add(name, std::string(text)); }
  JsonObject& add(const std::string& name, double value);
  JsonObject& add(const std::string& name, bool value);
  JsonObject& add_json(const std::string& name, const std::string& json);
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> members_;
};

std::string json_array(const std::vector<std::string>& items);

}  // namespace etvk_guard::harness
