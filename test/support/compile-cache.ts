import os from "node:os";
import path from "node:path";

/**
 * Halves the start of the program, which the tests start hundreds of times. Shared by all of them, as a user's commands
 * share theirs: each has a cache folder of its own, which would be empty at every start. It goes with the program that
 * it is of (stripped-program.ts).
 */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: path.join(process.env["DAYBREAK_TEST_PROGRAM"] ?? os.tmpdir(), "daybreak-test-code"),
};
