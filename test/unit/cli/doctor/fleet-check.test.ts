import { expect, test } from "vitest";
import { fleetCheck } from "../../../../src/cli/doctor/fleet-check.ts";
import { lookForDaemon } from "../../../../src/cli/doctor/daemon-look.ts";
import { startFakeDaemon } from "../fake-daemon.ts";

const ALONE = { joined: true, connected: false, name: "desk", machines: [{}] };

test.each([
  [{ ...ALONE, joined: false }, "note", /started without it/],
  [{ ...ALONE, problem: "Authorization Violation" }, "problem", /refuses the user and password/],
  [{ ...ALONE, problem: "connect ECONNREFUSED" }, "problem", /not reachable \(connect ECONNREFUSED\)/],
  [{ ...ALONE, connected: true, machines: [{}, {}] }, "ok", /joined as desk, 2 machines/],
  [
    { ...ALONE, connected: true, sharing_problem: "files are not shared" },
    "note",
    /1 machine; files are not shared/,
  ],
  [undefined, "note", /no daemon tells of it/],
])("of %j the doctor says %s", async (fleet, verdict, message) => {
  await using daemon = await startFakeDaemon({
    "GET /health": { status: "ok" },
    ...(fleet && { "GET /api/fleet": fleet }),
  });
  const { signal } = new AbortController();
  const http = { addr: "127.0.0.1", port: Number(new URL(daemon.url).port), isChosen: true };
  const look = lookForDaemon({ socket: daemon.socket, http, apiKey: undefined }, signal);
  const [finding] = await fleetCheck(look).look(signal);
  expect(finding).toMatchObject({ name: "Fleet", verdict, message: expect.stringMatching(message) });
});
