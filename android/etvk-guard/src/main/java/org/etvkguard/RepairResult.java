// SPDX-License-Identifier: Apache-2.0
package org.etvkguard;

import java.util.List;

/** What {@link EtvkGuard#repair} did. The lists cannot be changed. */
public final class RepairResult {
  /** False if nothing was rewritten; the output then has the input's bytes. */
  public final boolean changed;

  /** The sites that were rewritten. */
  public final List<Finding> repaired;

  /** The findings that stay, each with the reason. */
  public final List<Finding> remaining;

  /** Upper bound of the GPU memory that the rewrite adds. */
  public final long addedActivationBytes;

  RepairResult(boolean changed, List<Finding> repaired, List<Finding> remaining, long addedActivationBytes) {
    this.changed = changed;
    this.repaired = repaired;
    this.remaining = remaining;
    this.addedActivationBytes = addedActivationBytes;
  }

  /** Whether no finding remains. */
  public boolean isComplete() {
    return remaining.isEmpty();
  }
}
