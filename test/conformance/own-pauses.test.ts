import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { activeRequests } from "../support/active-requests.ts";
import { ENDLESS_OBJECT } from "../support/certain-requests.ts";
import { startDaemon } from "../support/start-daemon.ts";

// Windows has no signal that holds a process up.
describe.skipIf(process.platform === "win32")("a daemon that is held up itself", () => {
  test.each([
    ["an engine's silence", "SERVICE_ENGINE_STALL_TIMEOUT"],
    ["the time of a request", "SERVICE_ENGINE_REQUEST_TIMEOUT"],
  ])("does not take it for %s", async (_, variable) => {
    const daemon = await startDaemon({ env: { [variable]: "4s" } });
    onTestFinished(async () => await daemon.stop());
    const answer = fetch(`${daemon.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "daybreak-mini",
        messages: [{ role: "user", content: "Hi" }],
        max_tokens: 60,
        response_format: { type: "json_schema", json_schema: { name: "list", schema: ENDLESS_OBJECT } },
      }),
    });
    await expect.poll(() => activeRequests(daemon)).toBe(1);
    daemon.kill("SIGSTOP");
    await sleep(4500);
    daemon.kill("SIGCONT");
    const response = await answer;
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"length"')]);
    expect(daemon.logs()).not.toMatch(/engine-restarted|did not answer|ran longer/);
  });
});
