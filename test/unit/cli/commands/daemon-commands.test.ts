import { describe, expect, it } from "vitest";
import { startFakeDaemon } from "../fake-daemon.ts";
import { runCli } from "../run-cli.ts";

const status = {
  version: "1.2.3",
  llama_cpp: "b7",
  uptime_secs: 245,
  models_loaded: 1,
  http_endpoint: "http://127.0.0.1:8080",
  ipc_endpoint: "",
  default_model: "tiny",
  stats: {
    requests_total: 7,
    tokens_generated: 99,
    active_requests: 1,
    gpu_available: false,
    memory_used_bytes: 70_000_000,
    memory_total_bytes: 8_000_000_000,
  },
  kernels: "daybreak",
  sandbox: { mode: "auto", wall: "bubblewrap", parts: ["no network", "no other processes"] },
};

describe("status", () => {
  it("reports llama.cpp's slow kernels", async () => {
    const answer = { ...status, kernels: "stock" };
    await using daemon = await startFakeDaemon({ "GET /api/system/status": answer });
    const { stdout } = await runCli(["status", "--url", daemon.url]);
    expect(stdout).toContain("CPU kernels       llama.cpp's (slow)\n");
    const json = await runCli(["status", "--json", "--url", daemon.url]);
    expect(JSON.parse(json.stdout)).toMatchObject({ kernels: "stock" });
  });

  it("prints the status of the daemon", async () => {
    await using daemon = await startFakeDaemon({ "GET /api/system/status": status });
    const { code, stdout } = await runCli(["status", "--url", daemon.url]);
    expect(code).toBe(0);
    expect(stdout).toContain("Version           1.2.3 (llama.cpp b7)\n");
    expect(stdout).toContain("Running for       4m 05s\n");
    expect(stdout).toContain("IPC               off\n");
    expect(stdout).toContain("Requests          7 in total, 1 active\n");
    expect(stdout).toContain("Memory            70.0 MB of 8.0 GB\n");
    expect(stdout).toContain("GPU               none (daybreak gpu says why)\n");
    expect(stdout).toContain("CPU kernels       Daybreak's\n");
    expect(stdout).toContain(
      "Sandbox           Node's permission model and bubblewrap: no network, no other processes\n",
    );
  });

  it("exits with 3 when no daemon answers", async () => {
    const { code, stderr } = await runCli(["status", "--url", "ipc:///nonexistent/d.sock"]);
    expect(code).toBe(3);
    expect(stderr).toContain("No daemon answers at ipc:///nonexistent/d.sock");
  });
});

describe("stop", () => {
  it("requests the shutdown over the socket and waits until the daemon has stopped", async () => {
    const healths = ["draining", "draining"];
    await using daemon = await startFakeDaemon(
      {
        "POST /api/system/shutdown": { status: "shutting_down" },
        "GET /health": (response: { end(body: string): void; destroy(): void }) => {
          const health = healths.shift();
          if (health) response.end(JSON.stringify({ status: health }));
          else response.destroy();
        },
      },
      { ipc: true },
    );
    const { code, stdout } = await runCli(["stop", "--socket", daemon.socket]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "The daemon is stopped.\n" });
    expect(daemon.requests.map(({ path }) => path)).toEqual([
      "/api/system/shutdown",
      "/health",
      "/health",
      "/health",
    ]);
  });

  it("exits with 3 without a daemon", async () => {
    // A daemon of the user who runs the tests must not answer.
    const env = { SERVICE_HTTP_ADDR: "127.0.0.1", SERVICE_HTTP_PORT: "1" };
    expect((await runCli(["stop", "--socket", "/nonexistent/d.sock"], { env })).code).toBe(3);
  });

  it("explains a daemon that answers at its port only", async () => {
    await using daemon = await startFakeDaemon({ "GET /health": { status: "ok" } });
    const { code, stderr } = await runCli(["stop", "--socket", "/nonexistent/d.sock"], {
      env: { SERVICE_HTTP_ADDR: "127.0.0.1", SERVICE_HTTP_PORT: new URL(daemon.url).port },
    });
    expect(code).not.toBe(0);
    expect(stderr).toContain("A daemon answers at its port but not at this socket");
  });

  it("exits with 2 without a socket", async () => {
    const { code, stderr } = await runCli(["stop", "--url", "http://127.0.0.1:1"]);
    expect(code).toBe(2);
    expect(stderr).toContain("only be stopped through its socket");
  });
});

describe("fleet", () => {
  const machine = {
    id: "a",
    name: "desk",
    self: true,
    state: "ready",
    version: "1.2.3",
    engine: "0123456789abcdef",
    processor: { name: "a processor", system: "linux x64", usable: 4, cores: 2 },
    gpus: [],
    memory: { total_bytes: 16e9, models_bytes: 12e9, used_bytes: 1e9 },
    running: 1,
    waiting: 0,
    models: [{ alias: "tiny", loaded: false, size_bytes: 1e6, files: "f", settings: "s" }],
  };
  const attic = {
    ...machine,
    name: "attic\u001b[2J",
    self: false,
    models: [
      {
        ...machine.models[0],
        loaded: true,
        slots: 4,
        running: 1,
        context_size: 512,
        decode_tokens_per_second: 20.25,
      },
    ],
  };

  it("lists machines and models without control characters", async () => {
    const sharing = { sharing_problem: "files are not shared now, since it is so" };
    const fleet = { joined: true, connected: true, ...sharing, name: "desk", machines: [machine, attic] };
    await using daemon = await startFakeDaemon({ "GET /api/fleet": fleet });
    const { stdout, stderr } = await runCli(["fleet", "--url", daemon.url]);
    expect(stderr).toContain("Note: files are not shared now, since it is so.");
    expect(stdout).toMatch(
      /^desk \(this\) +ready +1\.2\.3 +01234567 +4 × a processor +- +1\.0 GB of 12\.0 GB +1 +0$/m,
    );
    expect(stdout).toMatch(/^attic\S* +tiny +1\.0 MB +512 tokens +1 of 4 +20\.3$/m);
    expect(stdout).toMatch(/^desk +tiny +1\.0 MB +- +- +-$/m);
    expect(stdout).not.toContain("\u001b");
  });

  it("explains how to join a fleet", async () => {
    const alone = { joined: false, connected: false, name: "", machines: [] };
    await using daemon = await startFakeDaemon({ "GET /api/fleet": alone });
    const { stdout, stderr } = await runCli(["fleet", "--url", daemon.url]);
    expect(stdout).toBe("");
    expect(stderr).toContain("--fleet-nats");
  });
});
