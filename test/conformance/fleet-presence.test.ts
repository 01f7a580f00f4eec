import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { NATS, type NatsServer, startNats } from "../support/nats-server.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { fleetOf } from "../support/test-fleet.ts";

let nats: NatsServer;
let entrance: TestDaemon;
let attic: TestDaemon;

async function join(name: string, url = nats.url): Promise<TestDaemon> {
  return await startDaemon({ args: ["--fleet-nats", url, "--fleet-name", name] });
}

/** For the present test, which may be tried again. */
async function visit(name: string, url?: string): Promise<TestDaemon> {
  const daemon = await join(name, url);
  onTestFinished(async () => await daemon.stop());
  return daemon;
}

async function namesAt(daemon: TestDaemon): Promise<string> {
  return (await fleetOf(daemon)).machines.map(({ name }) => name).join(" ");
}

describe.skipIf(NATS.isMissing)(`the machines of a fleet${NATS.note}`, () => {
  beforeAll(async () => {
    nats = await startNats();
    [entrance, attic] = await Promise.all([join("desk"), join("attic")]);
  });

  afterAll(async () => {
    await Promise.all([entrance, attic].map((daemon) => daemon?.stop()));
    await nats.stop();
  });

  test("see each other, with what they have loaded", async () => {
    await expect.poll(() => namesAt(entrance)).toMatch(/^(desk attic|attic desk)$/);
    const { joined, connected, machines } = await fleetOf(entrance);
    expect({ joined, connected }).toEqual({ joined: true, connected: true });
    const [self, other] = machines;
    expect(self).toMatchObject({ self: true, state: "ready", running: 0 });
    expect(other).toMatchObject({ self: false, engine: self?.engine, version: self?.version });
    const model = other?.models.find(({ loaded }) => loaded);
    expect(model?.slots).toBeGreaterThan(0);
    const same = self?.models.find(({ alias }) => alias === model?.alias);
    expect(same).toMatchObject({ files: model?.files, settings: model?.settings });
    expect(entrance.logs()).toContain("Fleet: joined as ");
    const metrics = await (await fetch(`${entrance.url}/metrics`)).text();
    expect(metrics).toContain("service_fleet_machines 2\n");
  });

  test("are missed when they are silent after they were killed, and say that they leave when they are stopped", async () => {
    const [killed, stopped] = await Promise.all([visit("killed"), visit("stopped")]);
    await expect.poll(async () => (await fleetOf(entrance)).machines.length).toBe(4);
    const before = entrance.logs().length;
    const reported = (): string => entrance.logs().slice(before);
    killed.kill("SIGKILL");
    await expect.poll(() => namesAt(entrance)).not.toContain("killed");
    await expect.poll(reported).toMatch(/"machine":"killed".*fleet: a machine is gone/);
    stopped.kill("SIGTERM");
    await expect.poll(() => namesAt(entrance)).not.toContain("stopped");
    await expect.poll(reported).toMatch(/"machine":"stopped".*fleet: a machine has left/);
  });

  test("work alone without the NATS server, and find each other again when it is back", async () => {
    await nats.kill("SIGKILL");
    await expect.poll(async () => (await fleetOf(entrance)).connected).toBe(false);
    expect((await fleetOf(entrance)).machines.length).toBe(1);
    const late = await visit("late");
    await expect
      .poll(() => late.logs())
      .toContain("Fleet: the NATS server is not reachable yet; late works alone until it is");
    await nats.restart();
    await expect.poll(async () => (await fleetOf(entrance)).machines.length).toBe(3);
    await expect.poll(async () => (await fleetOf(late)).machines.length).toBe(3);
  });

  test("may need a password, a token or nothing", async () => {
    const locked = await startNats({ config: 'authorization { user: "us", password: "p@ss" }' });
    try {
      const right = await visit("right", locked.url.replace("//", "//us:p%40ss@"));
      await expect.poll(async () => (await fleetOf(right)).connected).toBe(true);
      const wrong = await visit("wrong", locked.url.replace("//", "//us:wrong@"));
      await expect
        .poll(() => wrong.logs())
        .toMatch(/NATS server refuses the user and password .* and is tried again/);
      expect(wrong.logs()).not.toContain("us:wrong");
      expect((await fleetOf(wrong)).connected).toBe(false);
    } finally {
      await locked.stop();
    }
  });
});
