import { defineConfig } from "vitest/config";

/** Engine and daemon tests start real processes and wait for them: two or three files at once leave processors idle. */
const PARALLEL_FILES = 4;

/** Tests of real processes. */
const REAL = {
  // Each starts its own processes, or says that it shares them: test/support/shared-daemon.ts.
  isolate: false,
  globalSetup: ["test/support/own-folders.ts", "test/support/build-program.ts"],
  setupFiles: ["test/support/show-logs-of-failure.ts"],
};

export default defineConfig({
  test: {
    reporters: ["default", "./test/support/skipped-tests-reporter.ts"],
    pool: "forks",
    maxWorkers: PARALLEL_FILES,
    // A shared machine can starve a process for seconds. The report names each test that needed a second try.
    retry: process.env.CI ? 1 : 0,
    // Far beyond what any test takes: they only end what hangs, also where the machine is slow or shared.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 }, requireAssertions: true },
    restoreMocks: true,
    unstubEnvs: true,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/support/**/*.test.ts"],
          globalSetup: ["test/support/own-folders.ts"],
          // They leave nothing behind, and loading the sources anew for each of them takes longer than they do.
          isolate: false,
          // Node loads what they test as it does in the program, not vite: a seventh of their processor time less.
          experimental: { viteModuleRunner: false, nodeLoader: false },
        },
      },
      {
        extends: true,
        // Packs and installs what is published: a minute that a change of the code is rarely worth.
        test: { name: "package", include: ["test/package/**/*.test.ts"] },
      },
      { extends: true, test: { ...REAL, name: "real", include: ["test/{engine,e2e}/**/*.test.ts"] } },
      // On a software GPU, as on CI, they take a minute of two processors.
      { extends: true, test: { ...REAL, name: "gpu", include: ["test/gpu/**/*.test.ts"] } },
      // Clients that are installed for it alone: test:clients sees to that.
      { extends: true, test: { ...REAL, name: "clients", include: ["test/clients/*.test.ts"] } },
      // Every family of templates and models, every kernel and every keyword of schemas, through real engines: minutes.
      { extends: true, test: { ...REAL, name: "conformance", include: ["test/conformance/**/*.test.ts"] } },
      // The page and the engine in pages: in Chromium, in further browsers, which few machines have, and on a static host.
      { extends: true, test: { ...REAL, name: "browsers", include: ["test/browsers/**/*.test.ts"] } },
    ],
  },
});
