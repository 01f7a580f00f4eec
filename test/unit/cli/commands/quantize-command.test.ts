import path from "node:path";
import { describe, expect, it } from "vitest";
import { describeQuantizing } from "../../../../src/cli/terminal/progress-display.ts";
import { type FakeRoutes, ndjson, startFakeDaemon } from "../fake-daemon.ts";
import { runCli } from "../run-cli.ts";

const result = {
  status: "success",
  model: "small",
  quantization: "Q4_K_M",
  size_bytes: 4_900_000_000,
  source_bytes: 16_000_000_000,
  bits_per_weight: 4.8912,
  fallback_tensors: 0,
};
const half = {
  status: "quantizing" as const,
  progress: 0.5,
  completed_bytes: 2_450_000_000,
  total_bytes: 4_900_000_000,
};
const ROUTE = "POST /api/models/quantize";

async function against(routes: FakeRoutes, args: string[]) {
  await using daemon = await startFakeDaemon(routes);
  const run = await runCli([...args, "--url", daemon.url]);
  return { ...run, bodies: daemon.requests.map(({ body }) => body) };
}

describe("quantize", () => {
  it("prints the sizes before and after", async () => {
    const routes = { [ROUTE]: ndjson(half, result) };
    const { code, stdout, stderr, bodies } = await against(routes, ["quantize", "./big.gguf", "small"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe("Quantized small to Q4_K_M: 16.0 GB became 4.9 GB, 4.89 bits per weight.\n");
    const source = path.resolve("big.gguf");
    expect(bodies).toEqual([{ source, destination: "small", quantization: "Q4_K_M", stream: true }]);
  });

  it("reports tensors with another type", async () => {
    const routes = { [ROUTE]: ndjson(half, { ...result, fallback_tensors: 3 }) };
    const { stdout } = await against(routes, [
      "quantize",
      "big",
      "small",
      "-q",
      "q6_k",
      "--allow-requantize",
    ]);
    expect(stdout).toContain("3 tensors have another type");
  });

  it("prints the daemon's lines with --json", async () => {
    const { stdout } = await against({ [ROUTE]: ndjson(half, result) }, ["quantize", "a", "b", "--json"]);
    expect(stdout).toBe([half, result].map((line) => `${JSON.stringify(line)}\n`).join(""));
  });
});

describe("describeQuantizing", () => {
  it("estimates the remaining time once there is progress", () => {
    expect(describeQuantizing(half, 60_000)).toBe("50% of 4.9 GB, 1m 00s left");
    expect(describeQuantizing({ ...half, progress: 0 }, 60_000)).toBe("0% of 4.9 GB");
    expect(describeQuantizing({ ...half, progress: 1 }, 60_000)).toBe("100% of 4.9 GB");
  });
});
