// SPDX-License-Identifier: Apache-2.0
package org.etvkguard;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Reads what the native methods return: see {@code cpp/jni/record.h}, which has the same order. */
final class Reply {
  private final ByteBuffer bytes;
  private final String in;
  private final String out; // null: nothing is written

  Reply(byte[] reply, String in, String out) {
    this.bytes = ByteBuffer.wrap(reply);
    this.in = in;
    this.out = out;
  }

  Report report() throws EtvkGuardException {
    throwIfError();
    List<Finding> findings = findings();
    List<Report.Delegate> delegates = new ArrayList<>();
    for (int left = bytes.getInt(); left > 0; --left) {
      delegates.add(new Report.Delegate(text(), bytes.getInt(), text(), texts()));
    }
    return new Report(findings, Collections.unmodifiableList(delegates));
  }

  RepairResult repairResult() throws EtvkGuardException {
    throwIfError();
    boolean changed = flag();
    List<Finding> repaired = findings();
    return new RepairResult(changed, repaired, findings(), bytes.getLong());
  }

  private void throwIfError() throws EtvkGuardException {
    if (!flag()) {
      String file = flag() ? out : in;
      throw new EtvkGuardException(file, text(), text(), text(), text(), position());
    }
  }

  private List<Finding> findings() {
    List<Finding> findings = new ArrayList<>();
    for (int left = bytes.getInt(); left > 0; --left) {
      findings.add(new Finding(text(), text(), text(), position(), text(), text(), flag()));
    }
    return Collections.unmodifiableList(findings);
  }

  private Position position() {
    return new Position(text(), bytes.getInt(), bytes.getInt(), text(), text(), bytes.getLong());
  }

  private List<String> texts() {
    List<String> texts = new ArrayList<>();
    for (int left = bytes.getInt(); left > 0; --left) {
      texts.add(text());
    }
    return Collections.unmodifiableList(texts);
  }

  private boolean flag() {
    return bytes.get() != 0;
  }

  private String text() {
    int length = bytes.getInt();
    if (length < 0) {
      return null;
    }
    String text = new String(bytes.array(), bytes.position(), length, StandardCharsets.UTF_8);
    bytes.position(bytes.position() + length);
    return text;
  }
}
