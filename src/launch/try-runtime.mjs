// @ts-check
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { recordSuccess, hasSucceeded } from "./trial-record.mjs";

/** Longest start, in milliseconds. The first one reads over 100 MB from a disk that may be slow. */
const DEADLINE_MS = 60_000;

/** System packages of the libraries that Node's binaries need besides the C library. */
const LIBRARY_PACKAGES = new Map([
  ["libatomic.so.1", "apt-get install libatomic1 (Debian, Ubuntu), dnf install libatomic (Fedora, RHEL)"],
  ["libstdc++.so.6", "apt-get install libstdc++6 (Debian, Ubuntu), dnf install libstdc++ (Fedora, RHEL)"],
]);

/**
 * Explains why a Node binary cannot be started on this machine, with advice; undefined if it starts. The result is cached
 * for each binary, because the check takes as long as a start.
 * @param {string} binary
 * @param {string} folder for the cached result; if it is not writable, every start checks again
 * @param {number} [deadlineMs]
 * @returns {{ problem: string, cure?: string } | undefined}
 */
export function startProblem(binary, folder, deadlineMs = DEADLINE_MS) {
  try {
    accessSync(binary, constants.X_OK);
  } catch {
    return {
      problem: `The Node binary that comes with Daybreak may not be executed (${binary}).`,
      cure: "Install Daybreak anew, on a file system that allows programs.",
    };
  }
  const record = { folder, name: "runtime" };
  if (hasSucceeded(record, [binary])) return undefined;
  const { status, signal, error, stdout, stderr } = spawnSync(binary, ["--version"], {
    encoding: "utf8",
    timeout: deadlineMs,
    killSignal: "SIGKILL",
    windowsHide: true,
  });
  if (status === 0 && /^v\d+\./.test(stdout)) {
    recordSuccess(record, [binary]);
    return undefined;
  }
  // A shell that runs a damaged binary quotes it.
  const said = stderr
    ?.trim()
    .split("\n")[0]
    ?.replaceAll(/[^\x20-\x7e]/g, "?");
  const why =
    error && "code" in error && error.code === "ETIMEDOUT" ? `no answer in ${deadlineMs} ms` : undefined;
  const reason = why ?? (said || error?.message || (signal ? `ended by ${signal}` : `exit code ${status}`));
  const problem = `The Node binary that comes with Daybreak does not start here: ${reason}`;
  const library = /lib[\w+.-]+\.so(?:\.\d+)*/.exec(said ?? "")?.[0];
  if (library === undefined) return { problem };
  const packages = LIBRARY_PACKAGES.get(library);
  return { problem, cure: `Install the library ${library}${packages ? `: ${packages}` : ""}.` };
}
