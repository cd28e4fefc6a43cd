// SPDX-License-Identifier: Apache-2.0
package org.etvkguard;

/** Where in a program something is. Fields that do not apply are null, or -1. */
public final class Position {
  /** Name of the method. */
  public final String method;

  /** Index in the method's delegates. */
  public final int delegate;

  /** Index in the delegate's graph. */
  public final int opIndex;

  /** Name of the op, such as "et_vk.rms_norm.default". */
  public final String op;

  /** Name of the argument in the contract, such as "weight". */
  public final String argument;

  /** Bytes from the start of the file. */
  public final long offset;

  Position(String method, int delegate, int opIndex, String op, String argument, long offset) {
    this.method = method;
    this.delegate = delegate;
    this.opIndex = opIndex;
    this.op = op;
    this.argument = argument;
    this.offset = offset;
  }

  /** As "method 'forward', delegate 0, op 3 (et_vk.rms_norm.default), argument 'weight', byte 1234". */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder();
    add(text, method != null, "method '" + method + "'");
    add(text, delegate >= 0, "delegate " + delegate);
    add(text, opIndex >= 0, "op " + opIndex + (op == null ? "" : " (" + op + ")"));
    add(text, argument != null, "argument '" + argument + "'");
    add(text, offset >= 0, "byte " + offset);
    return text.toString();
  }

  private static void add(StringBuilder text, boolean applies, String part) {
    if (applies) {
      text.append(text.length() == 0 ? "" : ", ").append(part);
    }
  }
}
