import { describe, expect, test } from "vitest";
import { fleetReport } from "../../../../src/fleet/fleet-models.ts";
import { fakeApp } from "../../../support/fake-services.ts";
import { heartbeat, memberInfo, memberModel } from "../../../support/fleet-wire.ts";

const model = memberModel("tiny");

describe("GET /api/fleet", () => {
  test("reports a daemon without a fleet", async () => {
    const answer = await fakeApp().request("/api/fleet");
    expect(await answer.json()).toEqual({ joined: false, connected: false, name: "", machines: [] });
  });

  test("reports why the NATS server is not reachable", async () => {
    const self = { info: memberInfo("zoe"), heartbeat: heartbeat("zoe") };
    const connection = { isConnected: false, problem: "Authorization Violation" };
    const fleet = { joined: Promise.resolve(), report: () => fleetReport(connection, self, []) };
    const answer = await fakeApp({ overrides: { fleet } }).request("/api/fleet");
    expect(await answer.json()).toMatchObject({ connected: false, problem: "Authorization Violation" });
  });

  test("lists the machines with their models and load, this machine first", async () => {
    const self = { info: memberInfo("zoe", { models: [model] }), heartbeat: heartbeat("zoe") };
    const load = { alias: "tiny", slots: 4, running: 2, waiting: 1, contextSize: 512, gpuLayers: 0 };
    const other = {
      info: memberInfo("amy", { models: [model], gpus: [{ name: "a GPU", backend: "vulkan", memory: 8 }] }),
      heartbeat: heartbeat("amy", {
        state: "draining",
        loaded: [load],
        speeds: [{ alias: "tiny", decode: 20, prefill: 0 }],
      }),
    };
    const fleet = {
      joined: Promise.resolve(),
      report: () => fleetReport({ isConnected: true, sharingProblem: "files are not shared" }, self, [other]),
    };
    const answer = await fakeApp({ overrides: { fleet } }).request("/api/fleet");
    expect(await answer.json()).toMatchObject({
      joined: true,
      connected: true,
      sharing_problem: "files are not shared",
      name: "zoe",
      machines: [
        { name: "zoe", self: true, state: "ready", running: 0, models: [{ alias: "tiny", loaded: false }] },
        {
          name: "amy",
          self: false,
          state: "draining",
          running: 2,
          waiting: 1,
          gpus: [{ name: "a GPU", memory_bytes: 8 }],
          models: [{ loaded: true, slots: 4, decode_tokens_per_second: 20 }],
        },
      ],
    });
  });
});
