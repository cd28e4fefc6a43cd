// SPDX-License-Identifier: Apache-2.0
//
// What crosses to Java: one array of bytes, which org.etvkguard.Reply reads in the same order. So no class, method or field is
// looked up from here, and no more than one local reference is made by a call. Numbers are big-endian, as DataInputStream has it;
// a text is its length in bytes (4) and its UTF-8, or -1 where there is none.
#pragma once

#include <etvk_guard/pte.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace etvk_guard::jni {

class Record {
 public:
  void flag(bool value) { bytes_ += value ? '\1' : '\0'; }
  void number32(int32_t value) { big_endian(static_cast<uint32_t>(value), 4); }
  void number64(uint64_t value) { big_endian(value, 8); }
  void text(std::string_view bytes);
  void text_or_none(std::string_view bytes);
  void where(const Where& where);
  void findings(const std::vector<Finding>& findings);
  const std::string& bytes() const { return bytes_; }

 private:
  void big_endian(uint64_t value, int bytes);
  std::string bytes_;
};

std::string error_record(const Error& error, bool of_output = false);  // else of the input
std::string report_record(const Report& report);
std::string repair_record(const Repair& repair);

}  // namespace etvk_guard::jni
