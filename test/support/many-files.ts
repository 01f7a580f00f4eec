import { userLimits } from "../../src/machine/user-limits.ts";
import { need } from "./need.ts";

/** As many as systems usually allow at first; Node raises its own limit to the highest that it may. */
const MANY = 1024;

/** For tests that open hundreds of connections, here and in a daemon. Without a known limit there are enough. */
export const MANY_FILES = need(
  `room for ${MANY} open files (ulimit -n)`,
  (userLimits().descriptors ?? MANY) >= MANY,
);
