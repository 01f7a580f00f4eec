import { describe, expect, it } from "vitest";
import { runCli } from "../run-cli.ts";

const sandbox = { env: { SERVICE_SANDBOX: "require" } };
const SANDBOXED =
  "A required sandbox forbids native code and therefore GPUs; start with --sandbox auto (sandbox = auto) to use one.";

describe("gpu", () => {
  it("explains without a daemon why models run on the CPU", async () => {
    const { code, stdout } = await runCli(["gpu"], sandbox);
    expect(code).toBe(0);
    expect(stdout).toBe(`Models run on the CPU. ${SANDBOXED}\n`);
  });

  it("prints the reason as JSON", async () => {
    const { stdout } = await runCli(["gpu", "--json"], sandbox);
    expect(JSON.parse(stdout)).toEqual({
      available: false,
      problem: SANDBOXED,
      adapters: [],
    });
  });

  it("accepts the daemon's GPU flags", async () => {
    const { stdout } = await runCli(["gpu", "--sandbox", "require"]);
    expect(stdout).toContain("A required sandbox");
    const off = await runCli(["gpu", "--gpu-mode", "off"]);
    expect(off.stdout).toBe(
      "Models run on the CPU. The configuration turns the GPU off; set gpu.mode to auto to use one.\n",
    );
    expect((await runCli(["gpu", "--http-port", "1"])).code).toBe(2);
  });

  it("refuses an invalid setting", async () => {
    const { code, stderr } = await runCli(["gpu"], { env: { SERVICE_GPU_MODE: "perhaps" } });
    expect(code).toBe(2);
    expect(stderr).toContain("SERVICE_GPU_MODE");
  });
});
