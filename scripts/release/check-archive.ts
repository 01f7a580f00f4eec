import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { runCommand } from "./run-command.ts";
import { tryProgram } from "./try-program.ts";

/** Unpacking by the system's own tar takes five seconds. */
const DEADLINE_MS = 60_000;

/**
 * Unpacks this machine's archive into an empty folder, as users do, and sees that it answers, by a link too, with no
 * Node in sight.
 * @throws Error when it does not
 */
export async function checkArchive(archive: string): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-archive-"));
  try {
    // The system's tar reads zip files as well where there are such archives: on Windows.
    await runCommand("tar", ["-xf", archive, "-C", folder], { cwd: folder, timeoutMs: DEADLINE_MS });
    const [unpacked = ""] = readdirSync(folder);
    const start = process.platform === "win32" ? "daybreak.cmd" : "daybreak";
    const program = path.join(folder, unpacked, start);
    const link = path.join(folder, "bin", start);
    mkdirSync(path.dirname(link));
    if (process.platform !== "win32") symlinkSync(path.join("..", unpacked, start), link);
    await tryProgram(process.platform === "win32" ? program : link, folder, bareFolders());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Where the system's own programs are; Node may be there, too, and nobody asks for it. */
function bareFolders(): string {
  return process.platform === "win32" ? (process.env["PATH"] ?? "") : "/usr/bin:/bin";
}
