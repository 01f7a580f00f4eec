import { describe, expect, it } from "vitest";
import { runCli } from "../run-cli.ts";

const sandbox = { env: { SERVICE_SANDBOX: "true" } };

describe("gpu", () => {
  it("says without a daemon why models run on the CPU", async () => {
    const { code, stdout } = await runCli(["gpu"], sandbox);
    expect(code).toBe(0);
    expect(stdout).toBe("Models run on the CPU. Sandbox mode forbids native code, and with it every GPU.\n");
  });

  it("says it as JSON", async () => {
    const { stdout } = await runCli(["gpu", "--json"], sandbox);
    expect(JSON.parse(stdout)).toEqual({
      available: false,
      problem: "Sandbox mode forbids native code, and with it every GPU.",
      adapters: [],
    });
  });

  it("refuses a setting that is none", async () => {
    const { code, stderr } = await runCli(["gpu"], { env: { SERVICE_GPU_MODE: "perhaps" } });
    expect(code).toBe(2);
    expect(stderr).toContain("SERVICE_GPU_MODE");
  });
});
