import { defineConfig } from "vitest/config";

/** Engine and daemon tests start real processes: on two cores more than two files at once only makes them slower. */
const PARALLEL_FILES = 2;

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: PARALLEL_FILES,
    // Far beyond what any test takes: they only end what hangs, also where the machine is slow or shared.
    testTimeout: 90_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    restoreMocks: true,
    unstubEnvs: true,
  },
});
