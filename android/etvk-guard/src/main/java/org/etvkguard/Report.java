// SPDX-License-Identifier: Apache-2.0
package org.etvkguard;

import java.util.List;

/** What {@link EtvkGuard#check} found in a program. The lists cannot be changed. */
public final class Report {
  public final List<Finding> findings;
  public final List<Delegate> delegates;

  Report(List<Finding> findings, List<Delegate> delegates) {
    this.findings = findings;
    this.delegates = delegates;
  }

  /** Whether there is no finding at all, not even an informational one. */
  public boolean isClean() {
    return findings.isEmpty();
  }

  /** One delegate of one method. */
  public static final class Delegate {
    /** Name of the method. */
    public final String method;

    /** Index in the method's delegates. */
    public final int index;

    /** Such as "VulkanBackend". */
    public final String backend;

    /** Names of the graph's ops in order; empty for another backend. */
    public final List<String> ops;

    Delegate(String method, int index, String backend, List<String> ops) {
      this.method = method;
      this.index = index;
      this.backend = backend;
      this.ops = ops;
    }
  }
}
