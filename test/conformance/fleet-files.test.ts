import { randomBytes } from "node:crypto";
import { existsSync, globSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { fleetSchema } from "../../src/api/wire/machines.ts";
import { startFixtureHub, type FixtureHub } from "../support/fixture-hub.ts";
import { NATS, type NatsServer, startNats } from "../support/nats-server.ts";
import { postJson } from "../support/post-json.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

/** Takes a second to send, so that what happens in the middle of it happens then. */
const BIG = randomBytes(150e6);
const REPO = "owner/big-GGUF";
const SMALL = randomBytes(3e6);

let nats: NatsServer;
let hub: FixtureHub;
const daemons: TestDaemon[] = [];

describe.skipIf(NATS.isMissing)(`files in a fleet${NATS.note}`, () => {
  beforeAll(async () => {
    nats = await startNats();
    hub = await startFixtureHub({
      repos: {
        [REPO]: { files: { "big-Q8_0.gguf": BIG } },
        "owner/gated": { files: { "gated-Q8_0.gguf": SMALL }, gatedTo: ["token"] },
      },
    });
  });

  afterEach(async () => {
    await Promise.all(daemons.splice(0).map((daemon) => daemon.stop()));
    hub.requests.length = 0;
  });

  afterAll(async () => {
    await nats?.stop();
    await hub?.close();
  });

  test("are brought by another machine, with its name, and not by the hub again", async () => {
    const [one, two] = await fleetOf("one", "two");
    await pull(one);
    expect(bodies()).toHaveLength(1);
    const lines = await pull(two);
    expect(lines).toContain("big-Q8_0.gguf comes from one, a machine of the fleet");
    expect(lines).toContain('"status":"success"');
    expect(bodies()).toHaveLength(1);
    expect(readFileSync(blobOf(two)).equals(BIG)).toBe(true);
  });

  test("come from another machine when the hub is unreachable, and a warning says so", async () => {
    const one = await join("one");
    expect(await pull(one)).toContain('"status":"success"');
    const two = await join("two", { HUB_URL: "http://127.0.0.1:9" });
    await together(2, one, two);
    const lines = await pull(two);
    expect(lines).toContain(
      "The hub cannot be reached: using the copy of owner/big-GGUF on one, a machine of the fleet",
    );
    expect(lines).toContain('"status":"success"');
    expect(readFileSync(blobOf(two)).equals(BIG)).toBe(true);
    // What nobody has still says what is wrong.
    expect(await pull(two, "hf:owner/unknown")).toContain("hub_unreachable");
  });

  test("are downloaded once by machines that begin at about the same time", async () => {
    const [one, two, three] = await fleetOf("one", "two", "three");
    const rest = Promise.withResolvers<void>();
    onTestFinished(() => rest.resolve());
    hub.failNext(/^storage/, { pause: { after: 50e6, until: rest.promise } });
    const first = pull(one);
    first.catch(() => undefined); // awaited below
    await expect.poll(() => bodies().length).toBe(1);
    let following = 0;
    const follow = (line: string): void => {
      if (line.includes("comes from one")) following += 1;
      // One that has no answer in time asks the hub.
      if (following === 2 || bodies().length > 1) rest.resolve();
    };
    const others = await Promise.all([pull(two, undefined, follow), pull(three, undefined, follow)]);
    for (const lines of [await first, ...others]) expect(lines).toContain('"status":"success"');
    for (const lines of others) expect(lines).toContain("comes from one");
    expect(bodies()).toHaveLength(1);
    expect(readFileSync(blobOf(two)).equals(BIG)).toBe(true);
    expect(readFileSync(blobOf(three)).equals(BIG)).toBe(true);
  });

  test("go on with another machine when the one that sends is killed", async () => {
    const [one, two, three] = await fleetOf("one", "two", "three");
    await Promise.all([pull(one), pull(two)]);
    const before = bodies().length;
    let killed = false;
    const lines = await pull(three, undefined, (line) => {
      const sender = /comes from (one|two)/.exec(line)?.[1];
      if (sender !== undefined && !killed) (sender === "one" ? one : two).kill("SIGKILL");
      if (sender !== undefined) killed = true;
    });
    expect(lines).toContain("comes from one");
    expect(lines).toContain("comes from two");
    expect(lines).toContain('"status":"success"');
    expect(bodies()).toHaveLength(before);
    expect(readFileSync(blobOf(three)).equals(BIG)).toBe(true);
  });

  test("go on with the hub when the only machine is killed", async () => {
    const [one, two] = await fleetOf("one", "two");
    await pull(one);
    let isKilled = false;
    const lines = await pull(two, undefined, (line) => {
      if (!line.includes("comes from one") || isKilled) return;
      isKilled = true;
      one.kill("SIGKILL");
    });
    expect(lines).toContain('"status":"success"');
    expect(bodies()).toHaveLength(2);
    expect(bodies()[1]?.headers["range"]).toMatch(/^bytes=[1-9]/);
    expect(readFileSync(blobOf(two)).equals(BIG)).toBe(true);
  });

  test("go on with the same machine when the NATS server is restarted in the middle", async () => {
    const [one, two] = await fleetOf("one", "two");
    await pull(one);
    let restarted: Promise<void> | undefined;
    let lines: string;
    try {
      lines = await pull(two, undefined, (line) => {
        if (!line.includes("comes from one")) return;
        restarted ??= nats.kill("SIGKILL").then(() => nats.restart());
      });
    } finally {
      await restarted;
    }
    expect(restarted).toBeDefined();
    expect(lines).toContain('"status":"success"');
    expect(bodies()).toHaveLength(1);
    expect(readFileSync(blobOf(two)).equals(BIG)).toBe(true);
  });

  test("are resumed, not begun again, by a pull that was interrupted", async () => {
    const [one, two] = await fleetOf("one", "two");
    await pull(one);
    const part = path.join(
      path.dirname(blobOf(one)).replace(one.cacheDir, two.cacheDir),
      `${path.basename(blobOf(one))}.incomplete`,
    );
    const leaving = new AbortController();
    await pull(
      two,
      undefined,
      (line) => void (line.includes("comes from one") && leaving.abort()),
      leaving.signal,
    );
    await expect.poll(() => existsSync(part)).toBe(true);
    // Where it goes on, the hub's request shows.
    await one.stop();
    const lines = await pull(two);
    expect(bodies().at(-1)?.headers["range"]).toMatch(/^bytes=[1-9]/);
    expect(lines).toContain('"status":"success"');
    expect(readFileSync(blobOf(two)).equals(BIG)).toBe(true);
  });

  test("are checked: what a machine sends that is not the file is brought by the hub", async () => {
    const [one, two] = await fleetOf("one", "two");
    await pull(one);
    // As long as the right one, but with other bytes.
    const blob = blobOf(one);
    writeFileSync(blob, BIG.subarray(0, 1e6));
    truncateSync(blob, BIG.length);
    const lines = await pull(two);
    expect(lines).toContain("comes from one");
    expect(lines).toContain('"status":"success"');
    expect(bodies()).toHaveLength(2);
    expect(readFileSync(blobOf(two)).equals(BIG)).toBe(true);
  });

  test("stay on a machine that shares none", async () => {
    const one = await join("one", { SERVICE_FLEET_SHARE_FILES: "false" });
    const two = await join("two");
    await together(2, one, two);
    await pull(one);
    expect(await pull(two)).not.toContain("comes from");
    expect(bodies()).toHaveLength(2);
  });

  test("of gated models are given to machines of the fleet without a token", async () => {
    const one = await join("one", { HUB_TOKEN: "token" });
    const [two, far] = await Promise.all([join("two"), join("far", { HUB_URL: "http://127.0.0.1:9" })]);
    await together(3, one, two, far);
    expect(await pull(one, "hf:owner/gated")).toContain('"status":"success"');
    // The hub lists it for everybody, and refuses the file itself: the machine that has it does not.
    expect(await pull(two, "hf:owner/gated")).toContain("comes from one");
    expect(await pull(far, "hf:owner/gated")).toContain('"status":"success"');
  });
});

async function join(name: string, env: Record<string, string> = {}): Promise<TestDaemon> {
  const daemon = await startDaemon({
    env: { HUB_URL: hub.url, SERVICE_FLEET_NATS: nats.url, SERVICE_FLEET_NAME: name, ...env },
  });
  daemons.push(daemon);
  return daemon;
}

async function fleetOf<Names extends readonly string[]>(
  ...names: Names
): Promise<{ [Index in keyof Names]: TestDaemon }> {
  const joined = await Promise.all(names.map((name) => join(name)));
  await together(joined.length, ...joined);
  // As many as there are names.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return joined as unknown as { [Index in keyof Names]: TestDaemon };
}

/** Waits until all of them see each other. */
async function together(count: number, ...machines: TestDaemon[]): Promise<void> {
  for (const { url } of machines) {
    const seen = async () =>
      fleetSchema.parse(await (await fetch(`${url}/api/fleet`)).json()).machines.length;
    await expect.poll(seen).toBe(count);
  }
}

/** Pulls, and returns all lines. */
async function pull(
  { url }: TestDaemon,
  name = `hf:${REPO}`,
  onLine: (line: string) => void = () => {},
  signal?: AbortSignal,
): Promise<string> {
  let text = "";
  try {
    const answer = await postJson(`${url}/api/models/pull`, { name, stream: true }, signal);
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      for (const line of chunk.split("\n")) onLine(line);
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
  return text;
}

/** Files that the hub's storage was asked for. */
function bodies() {
  return hub.downloads.filter(({ server }) => server === "storage");
}

/** The file in a machine's cache. */
function blobOf({ cacheDir }: TestDaemon): string {
  const blob = globSync(path.join(cacheDir, "models--owner--big-GGUF/blobs/*")).find(
    (file) => !file.endsWith(".incomplete"),
  );
  if (blob === undefined) throw new Error("the file is not there");
  return blob;
}
