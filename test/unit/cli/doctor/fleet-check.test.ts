import { expect, test } from "vitest";
import { fleetCheck } from "../../../../src/cli/doctor/fleet-check.ts";
import { lookForDaemon } from "../../../../src/cli/doctor/daemon-look.ts";
import { startFakeDaemon } from "../fake-daemon.ts";

const ALONE = { joined: true, connected: false, name: "desk", machines: [{}] };

async function look(fleet: object | undefined, isConfigured: boolean) {
  await using daemon = await startFakeDaemon({
    "GET /health": { status: "ok" },
    ...(fleet && { "GET /api/fleet": fleet }),
  });
  const { signal } = new AbortController();
  const http = { addr: "127.0.0.1", port: Number(new URL(daemon.url).port), isChosen: true };
  const found = lookForDaemon({ socket: daemon.socket, http, apiKey: undefined }, signal);
  return await fleetCheck(found, isConfigured).look(signal);
}

test.each([
  [{ ...ALONE, joined: false }, "note", /started without it/],
  [{ ...ALONE, problem: "Authorization Violation" }, "problem", /refuses the user and password/],
  [{ ...ALONE, problem: "connect ECONNREFUSED" }, "problem", /not reachable \(connect ECONNREFUSED\)/],
  [
    { ...ALONE, connected: true, sharing_problem: "files are not shared" },
    "note",
    /1 machine; files are not shared/,
  ],
  [{ ...ALONE, connected: true, machines: [{}, {}] }, "ok", /joined as desk, 2 machines/],
  [undefined, "note", /no daemon tells of it/],
])("of %j the doctor says %s", async (fleet, verdict, message) => {
  const [finding] = await look(fleet, true);
  expect(finding).toMatchObject({ name: "Fleet", verdict, message: expect.stringMatching(message) });
});

test("a fleet that no configuration names is told of where the daemon has joined it", async () => {
  expect(await look({ ...ALONE, connected: true }, false)).toMatchObject([
    { verdict: "ok", message: "joined as desk, 1 machine" },
  ]);
  expect(await look({ ...ALONE, joined: false }, false)).toEqual([]);
  expect(await look(undefined, false)).toEqual([]);
});
