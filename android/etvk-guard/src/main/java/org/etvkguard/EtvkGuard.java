// SPDX-License-Identifier: Apache-2.0
package org.etvkguard;

import java.nio.charset.StandardCharsets;
import java.util.Objects;

/**
 * Finds and repairs broken prepack contracts in ExecuTorch program files ({@code .pte}) for its Vulkan delegate.
 *
 * <p>All methods may be called from any thread, and block while they read and write: not for an app's main thread. Weights are
 * not read to check a file, and copied file to file to repair it. Paths are taken as UTF-8.
 */
public final class EtvkGuard {
  static {
    System.loadLibrary("etvk_guard_jni");
  }

  private EtvkGuard() {}

  /**
   * Holds every op of every Vulkan delegate in a program against the prepack contract.
   *
   * @throws EtvkGuardException the file cannot be read, or is not a valid program
   * @throws IllegalArgumentException the path has a null character in it
   */
  public static Report check(String path) throws EtvkGuardException {
    return new Reply(nativeCheck(bytes(path, "path")), path, null).report();
  }

  /**
   * Rewrites each site that can be rewritten, so that a stock delegate runs the program. The input is not touched; the output is
   * there whole or not at all, and is written also where nothing had to be changed. What is left is in
   * {@link RepairResult#remaining}.
   *
   * @param in the program
   * @param out the file to write; replaced if it exists, refused if it is the input
   * @throws EtvkGuardException the input cannot be read or is not a valid program, or the output cannot be written
   * @throws IllegalArgumentException a path has a null character in it
   */
  public static RepairResult repair(String in, String out) throws EtvkGuardException {
    byte[] from = bytes(in, "in");
    return new Reply(nativeRepair(from, bytes(out, "out")), in, out).repairResult();
  }

  /** The version of the native library. */
  public static String version() {
    return new String(nativeVersion(), StandardCharsets.UTF_8);
  }

  private static byte[] bytes(String path, String name) {
    Objects.requireNonNull(path, name);
    if (path.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(name + " has a null character in it");
    }
    return path.getBytes(StandardCharsets.UTF_8);
  }

  private static native byte[] nativeCheck(byte[] path);

  private static native byte[] nativeRepair(byte[] from, byte[] to);

  private static native byte[] nativeVersion();
}
