// SPDX-License-Identifier: Apache-2.0
package org.etvkguard;

/** An argument of an op that breaks the contract, or an op that the contract does not know. */
public final class Finding {
  /** Such as "EG101": see {@code docs/findings.md}. */
  public final String code;

  /** Such as "norm-weight-runtime". */
  public final String name;

  /** "error", "warning" or "info". */
  public final String severity;

  /** Where it is. */
  public final Position position;

  /** What is wrong, with the shapes, dtypes and values that show it. */
  public final String message;

  /** What a stock delegate does: "abort" while loading, "wrong" values, or "none". */
  public final String stock;

  /** Whether a repair has a rewrite for it. */
  public final boolean fixable;

  Finding(
      String code, String name, String severity, Position position, String message, String stock, boolean fixable) {
    this.code = code;
    this.name = name;
    this.severity = severity;
    this.position = position;
    this.message = message;
    this.stock = stock;
    this.fixable = fixable;
  }

  @Override
  public String toString() {
    return code + " " + name + ": " + message + " (" + position + ")";
  }
}
