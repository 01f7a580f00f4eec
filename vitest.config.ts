import { defineConfig } from "vitest/config";

/** Engine and daemon tests start real processes: on two cores more than two files at once only makes them slower. */
const PARALLEL_FILES = 2;

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: PARALLEL_FILES,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    restoreMocks: true,
    unstubEnvs: true,
  },
});
