import { spawn } from "node:child_process";

/**
 * Runs a program in a process group that ends with the process at the other end of standard input, even when that is
 * killed and cannot end anything itself.
 */

const [program = "", ...args] = process.argv.slice(2);
const child = spawn(program, args, { stdio: ["ignore", "inherit", "inherit"] });
child.once("error", (error) => {
  console.error(error);
  process.exit(1);
});
child.once("exit", (code) => process.exit(code ?? 1));
process.stdin.resume().once("close", () => process.kill(-process.pid, "SIGKILL"));
