import { describe, expect, it } from "vitest";
import { type FakeRoutes, refuse, startFakeDaemon } from "../fake-daemon.ts";
import { runCli } from "../run-cli.ts";

const small = {
  spec: "hf:ada/tiny-GGUF:Q4_K_M",
  file: "tiny-Q4_K_M.gguf",
  shards: 1,
  quantization: "Q4_K_M",
  size_bytes: 4_700_000_000,
  partial_bytes: 0,
  fits: true,
  needed_bytes: 6_100_000_000,
  context_size: 4096,
};
const files = (models: readonly object[], more: object = {}) => ({
  repo: "ada/tiny-GGUF",
  gated: false,
  page: "http://hub.test/ada/tiny-GGUF",
  estimate: "Estimated.",
  models,
  ...more,
});
const TINY = "GET /api/hub/files?repo=ada%2Ftiny-GGUF";
const repo = (name: string) => ({ repo: name, gated: false, downloads: 1, likes: 1 });

async function against(routes: FakeRoutes, args: string[]) {
  await using daemon = await startFakeDaemon(routes);
  const run = await runCli([...args, "--url", daemon.url]);
  return { ...run, paths: daemon.requests.map(({ path }) => path) };
}

describe("search", () => {
  it("prints specs, sizes and whether models fit", async () => {
    const gpu = { layers: 33, all_layers: 33, bytes: 1 };
    const routes = {
      "GET /api/hub/search?query=tiny+model&limit=5": { repos: [repo("ada/tiny-GGUF")] },
      [TINY]: files([
        { ...small, on_disk: "tiny" },
        { ...small, spec: "hf:ada/tiny-GGUF:Q6_K", gpu },
        { ...small, spec: "hf:ada/tiny-GGUF:Q8_0", gpu: { ...gpu, layers: 9 } },
        { ...small, spec: "hf:ada/tiny-GGUF:F16", fits: false, needed_bytes: 16e9, reason: "Too large." },
      ]),
    };
    const { code, stdout } = await against(routes, ["search", "tiny model"]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      [
        "SPEC                     SIZE    MEMORY   FITS",
        "hf:ada/tiny-GGUF:Q4_K_M  4.7 GB  6.1 GB   yes, on disk",
        "hf:ada/tiny-GGUF:Q6_K    4.7 GB  6.1 GB   yes, GPU",
        "hf:ada/tiny-GGUF:Q8_0    4.7 GB  6.1 GB   yes, 9 of 33 layers on the GPU",
        "hf:ada/tiny-GGUF:F16     4.7 GB  16.0 GB  no",
        "",
      ].join("\n"),
    );
  });

  it.each(["ada/tiny-GGUF", "hf:ada/tiny-GGUF", "hf:ada/tiny-GGUF:Q8_0"])(
    "lists the repository of %s without a search",
    async (query) => {
      const { stdout, paths } = await against({ [TINY]: files([small], { gated: true }) }, ["search", query]);
      expect(paths).toEqual(["/api/hub/files?repo=ada%2Ftiny-GGUF"]);
      expect(stdout).toContain("yes, gated");
    },
  );

  it("reports a repository that cannot be listed and lists the others", async () => {
    const routes = {
      "GET /api/hub/search?query=tiny&limit=2": { repos: [repo("bob/none"), repo("ada/tiny-GGUF")] },
      "GET /api/hub/files?repo=bob%2Fnone": refuse(404, "no_gguf_in_repo", "not_found", "It has none."),
      [TINY]: files([small]),
    };
    const { code, stdout, stderr } = await against(routes, ["search", "tiny", "-n", "2"]);
    expect([code, stderr]).toEqual([0, "bob/none: It has none.\n"]);
    expect(stdout).toContain("hf:ada/tiny-GGUF:Q4_K_M");
  });

  it("prints JSON, and a message when nothing is found", async () => {
    const routes = {
      "GET /api/hub/search?query=none&limit=5": { repos: [] },
      [TINY]: files([small]),
    };
    const { stdout } = await against(routes, ["search", "ada/tiny-GGUF", "--json"]);
    expect(JSON.parse(stdout)).toEqual([files([small])]);
    const { stderr } = await against(routes, ["search", "none"]);
    expect(stderr).toBe("The hub has no GGUF models for none.\n");
  });

  it("fails with the daemon's message", async () => {
    const { code, stderr } = await against(
      { [TINY]: refuse(503, "hub_unreachable", "model_error", "No hub.") },
      ["search", "ada/tiny-GGUF"],
    );
    expect(code).not.toBe(0);
    expect(stderr).toContain("No hub.");
  });
});
