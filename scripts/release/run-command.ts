import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { z } from "zod";

/** Output of a program that failed; empty if it could not be started. */
const outputSchema = z.object({ stdout: z.string().default(""), stderr: z.string().default("") });

/** Most output of a command that is kept, in bytes: an SBOM has some hundred kilobytes. */
const MAX_OUTPUT_BYTES = 64 << 20;

interface CommandOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly timeoutMs?: number;
}

/**
 * Runs a program to its end.
 * @returns its standard output
 * @throws Error with what it wrote, when it fails or takes too long
 */
export async function runCommand(
  program: string,
  args: readonly string[],
  { cwd, env = process.env, timeoutMs = 0 }: CommandOptions,
): Promise<string> {
  try {
    // On Windows npm and its like are scripts of the shell.
    const shell = process.platform === "win32" && !program.endsWith(".exe");
    const options = { cwd, env, shell, timeout: timeoutMs, maxBuffer: MAX_OUTPUT_BYTES };
    return (await promisify(execFile)(program, args, options)).stdout;
  } catch (error) {
    const { stdout, stderr } = outputSchema.parse(error);
    const said = `${stdout}\n${stderr}`.trim();
    throw new Error(`${program} ${args.join(" ")} failed in ${cwd}:\n${said || String(error)}`, {
      cause: error,
    });
  }
}
