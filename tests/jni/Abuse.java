// SPDX-License-Identifier: Apache-2.0
// Wrong arguments, long loops and many threads, on the faulty program args[0] and in the folder args[1]. Prints "ok".

import java.io.BufferedReader;
import java.io.FileReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.etvkguard.EtvkGuard;
import org.etvkguard.EtvkGuardException;
import org.etvkguard.RepairResult;

public final class Abuse {
  private static final int CALLS = 20000;
  private static final long GROWTH_KB = 48 * 1024;

  public static void main(String[] args) throws Exception {
    String path = args[0];
    String folder = args[1];
    arguments(path, folder);
    lists(path);
    loops(path, folder);
    threads(path, folder);
    System.out.println("ok");
  }

  private static void arguments(String path, String folder) {
    String other = folder + "/null.pte";
    expect(NullPointerException.class, () -> EtvkGuard.check(null));
    expect(NullPointerException.class, () -> EtvkGuard.repair(null, other));
    expect(NullPointerException.class, () -> EtvkGuard.repair(path, null));
    expect(IllegalArgumentException.class, () -> EtvkGuard.check(path + "\0"));
    expect(IllegalArgumentException.class, () -> EtvkGuard.repair("\0", other));
    expect(IllegalArgumentException.class, () -> EtvkGuard.repair(path, other + "\0"));
    expect(EtvkGuardException.class, () -> EtvkGuard.check(""));
    expect(EtvkGuardException.class, () -> EtvkGuard.check(folder));
    expect(EtvkGuardException.class, () -> EtvkGuard.repair(path, path));
    expect(EtvkGuardException.class, () -> EtvkGuard.repair(path, folder + "/no/such/folder"));
  }

  private static void lists(String path) throws Exception {
    expect(UnsupportedOperationException.class, () -> EtvkGuard.check(path).findings.remove(0));
    expect(UnsupportedOperationException.class, () -> EtvkGuard.check(path).delegates.remove(0));
    expect(UnsupportedOperationException.class, () -> EtvkGuard.check(path).delegates.get(0).ops.remove(0));
    check(EtvkGuard.version().matches("\\d+\\.\\d+\\.\\d+"), "version " + EtvkGuard.version());
  }

  // What a call leaves behind would show after so many.
  private static void loops(String path, String folder) throws Exception {
    long before = 0;
    for (int call = 0; call < CALLS; ++call) {
      check(EtvkGuard.check(path).findings.size() == 1, "one finding");
      expect(EtvkGuardException.class, () -> EtvkGuard.check(folder));
      if (call == CALLS / 4) {
        before = residentKilobytes();
      }
    }
    long grown = residentKilobytes() - before;
    check(grown < GROWTH_KB, "resident memory grew by " + grown + " kB");
  }

  private static void threads(String path, String folder) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    List<Future<Boolean>> results = new ArrayList<>();
    for (int index = 0; index < 64; ++index) {
      String out = folder + "/out" + index % 4 + ".pte"; // several write the same file
      Callable<Boolean> work = () -> {
        RepairResult result = EtvkGuard.repair(path, out);
        return result.changed && result.isComplete() && EtvkGuard.check(out).isClean();
      };
      results.add(pool.submit(work));
    }
    for (Future<Boolean> result : results) {
      check(result.get(), "each output is whole and clean");
    }
    pool.shutdown();
  }

  private static long residentKilobytes() throws IOException {
    try (BufferedReader status = new BufferedReader(new FileReader("/proc/self/status"))) {
      for (String line = status.readLine(); line != null; line = status.readLine()) {
        if (line.startsWith("VmRSS:")) {
          return Long.parseLong(line.replaceAll("\\D", ""));
        }
      }
    }
    throw new IOException("no VmRSS");
  }

  private static void expect(Class<? extends Throwable> kind, Callable<?> call) {
    try {
      call.call();
    } catch (Throwable thrown) {
      check(kind.isInstance(thrown), "expected " + kind + ", got " + thrown);
      return;
    }
    throw new AssertionError("expected " + kind + ", got no exception");
  }

  private static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }
}
