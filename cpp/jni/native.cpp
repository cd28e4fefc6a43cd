// SPDX-License-Identifier: Apache-2.0
//
// The native methods of org.etvkguard.EtvkGuard. Paths come as UTF-8, which is what Android's and Linux's file systems take.
#include <jni.h>

#include <cstdint>

#include "record.h"

namespace {

using namespace etvk_guard;

std::string bytes_of(JNIEnv* env, jbyteArray array) {
  std::string bytes(static_cast<size_t>(env->GetArrayLength(array)), '\0');
  env->GetByteArrayRegion(array, 0, static_cast<jsize>(bytes.size()), reinterpret_cast<jbyte*>(bytes.data()));
  return bytes;
}

// Null with a pending OutOfMemoryError where there is no memory for it.
jbyteArray array_of(JNIEnv* env, const std::string& bytes) {
  if (bytes.size() > INT32_MAX) {
    return array_of(env, jni::error_record({ErrorCode::kTooLarge, "the result is larger than an array can be", {}}));
  }
  const auto size = static_cast<jsize>(bytes.size());
  jbyteArray array = env->NewByteArray(size);
  if (array != nullptr) {
    env->SetByteArrayRegion(array, 0, size, reinterpret_cast<const jbyte*>(bytes.data()));
  }
  return array;
}

std::string check_file(const std::string& path) {
  FileReader reader;
  Program program;
  Report report;
  Error error = FileReader::open(path.c_str(), &reader);
  if (!error) {
    error = Program::open(reader, &program);
  }
  if (!error) {
    error = check(program, &report);
  }
  return error ? jni::error_record(error) : jni::report_record(report);
}

std::string repair_file(const std::string& from, const std::string& to) {
  FileReader reader;
  Program program;
  Repair done;
  Error error = FileReader::open(from.c_str(), &reader);
  if (!error) {
    error = Program::open(reader, &program);
  }
  if (!error) {
    error = repair(program, &done);
  }
  if (error) {
    return jni::error_record(error);
  }
  error = write_file(done.overlay, to.c_str(), from.c_str());
  return error ? jni::error_record(error, true) : jni::repair_record(done);
}

}  // namespace

extern "C" {

JNIEXPORT jbyteArray JNICALL Java_org_etvkguard_EtvkGuard_nativeCheck(JNIEnv* env, jclass, jbyteArray path) {
  return array_of(env, check_file(bytes_of(env, path)));
}

JNIEXPORT jbyteArray JNICALL Java_org_etvkguard_EtvkGuard_nativeRepair(JNIEnv* env, jclass, jbyteArray from, jbyteArray to) {
  return array_of(env, repair_file(bytes_of(env, from), bytes_of(env, to)));
}

JNIEXPORT jbyteArray JNICALL Java_org_etvkguard_EtvkGuard_nativeVersion(JNIEnv* env, jclass) {
  return array_of(env, ETVK_GUARD_VERSION);
}

}  // extern "C"
