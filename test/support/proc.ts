import { existsSync } from "node:fs";
import { both, need, unless } from "./need.ts";

const IS_LINUX = process.platform === "linux";

/** Files under /proc by which Linux describes itself and its processes; a plain chroot has none of them. */
export const PROC = need("/proc", !IS_LINUX || existsSync("/proc/self/exe"));

/** For tests that look there themselves. */
export const LINUX_PROC = both(unless(IS_LINUX, "Linux alone has /proc"), PROC);
