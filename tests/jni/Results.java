// SPDX-License-Identifier: Apache-2.0
// Runs the commands in a file, "check PATH" or "repair IN OUT", their parts apart by tabs, and prints all that comes back: a line
// an object, its fields apart by tabs.

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.List;
import org.etvkguard.EtvkGuard;
import org.etvkguard.EtvkGuardException;
import org.etvkguard.Finding;
import org.etvkguard.Position;
import org.etvkguard.RepairResult;
import org.etvkguard.Report;

public final class Results {
  private static PrintStream out;

  public static void main(String[] args) throws Exception {
    out = new PrintStream(System.out, false, "UTF-8");
    for (String line : new String(Files.readAllBytes(Paths.get(args[0])), StandardCharsets.UTF_8).split("\n")) {
      String[] parts = line.split("\t");
      for (int i = 1; i < parts.length; ++i) {
        parts[i] = unescaped(parts[i]);
      }
      try {
        if (parts[0].equals("check")) {
          print(EtvkGuard.check(parts[1]));
        } else {
          print(EtvkGuard.repair(parts[1], parts[2]));
        }
      } catch (EtvkGuardException error) {
        print(error);
      }
    }
    out.flush();
  }

  private static void print(Report report) {
    line("report", report.isClean());
    print("finding", report.findings);
    for (Report.Delegate delegate : report.delegates) {
      line("delegate", delegate.method, delegate.index, delegate.backend, String.join(" ", delegate.ops));
    }
  }

  private static void print(RepairResult result) {
    line("repair", result.changed, result.isComplete(), result.addedActivationBytes);
    print("repaired", result.repaired);
    print("remaining", result.remaining);
  }

  private static void print(String kind, List<Finding> findings) {
    for (Finding found : findings) {
      Position at = found.position;
      line(kind, found.code, found.name, found.severity, at.method, at.delegate, at.opIndex, at.op, at.argument, at.offset,
          found.message, found.stock, found.fixable);
    }
  }

  private static void print(EtvkGuardException error) {
    Position at = error.getPosition();
    line("error", error.getCode(), error.getName(), error.getProblem(), error.getAdvice(), at.method, at.delegate, at.opIndex,
        at.op, at.argument, at.offset, error.getMessage());
  }

  private static void line(Object... fields) {
    StringBuilder text = new StringBuilder();
    for (Object field : fields) {
      text.append(text.length() == 0 ? "" : "\t").append(escaped(String.valueOf(field)));
    }
    out.print(text.append('\n'));
  }

  private static String escaped(String text) {
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
  }

  private static String unescaped(String text) {
    return text.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r").replace("\\\\", "\\");
  }
}
