// SPDX-License-Identifier: Apache-2.0
package org.etvkguard;

/** A file cannot be read, repaired or written. The codes are listed in {@code docs/findings.md}. */
public final class EtvkGuardException extends Exception {
  private static final long serialVersionUID = 1L;

  private final String code;
  private final String name;
  private final String problem;
  private final String advice;
  private final transient Position position;

  EtvkGuardException(String file, String code, String name, String problem, String advice, Position position) {
    super(message(file, code, name, problem, advice, position));
    this.code = code;
    this.name = name;
    this.problem = problem;
    this.advice = advice;
    this.position = position;
  }

  private static String message(
      String file, String code, String name, String problem, String advice, Position position) {
    String place = position.toString();
    return code + " " + name + ": " + file + ": " + problem + (place.isEmpty() ? "" : " (" + place + ")")
        + (advice.isEmpty() ? "" : ". " + advice);
  }

  /** Such as "EG005". */
  public String getCode() {
    return code;
  }

  /** Such as "truncated". */
  public String getName() {
    return name;
  }

  /** Only what is wrong; {@link #getMessage} has the file, the place and the advice too. */
  public String getProblem() {
    return problem;
  }

  /** What to do. */
  public String getAdvice() {
    return advice;
  }

  /** Where in the program; null after serialization. */
  public Position getPosition() {
    return position;
  }
}
