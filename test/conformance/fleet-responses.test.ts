import { randomBytes } from "node:crypto";
import OpenAI, { BadRequestError, NotFoundError } from "openai";
import { afterEach, describe, expect, test } from "vitest";
import { findProgram } from "../support/find-program.ts";
import {
  NATS,
  type NatsOptions,
  type NatsServer,
  startNats,
  startNatsCluster,
} from "../support/nats-server.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const model = "daybreak-mini";
const BRIEF = { model, max_output_tokens: 2 };
const PRLIMIT = findProgram("prlimit");
const WARNING = "this machine keeps responses for itself alone";

const servers: NatsServer[] = [];
const daemons: TestDaemon[] = [];
afterEach(async () => {
  await Promise.all(daemons.splice(0).map((daemon) => daemon.stop()));
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

describe.skipIf(NATS.isMissing)(`responses in a fleet${NATS.note}`, () => {
  test("go on at every entrance, lend their items, and are gone everywhere when they are deleted", async () => {
    const [one, two] = await fleetWith({ jetStream: true });
    const first = await one.responses.create({ ...BRIEF, input: "Hello", instructions: "Be brief." });
    const second = await two.responses.create({ ...BRIEF, input: "And?", previous_response_id: first.id });
    expect(second.usage?.input_tokens).toBeGreaterThan(first.usage?.input_tokens ?? 0);
    expect(await two.responses.retrieve(first.id)).toEqual(await one.responses.retrieve(first.id));
    const third = await one.responses
      .stream({ ...BRIEF, input: "So?", previous_response_id: second.id })
      .finalResponse();
    const items = await two.responses.inputItems.list(third.id, { order: "asc" });
    expect(items.data).toEqual((await one.responses.inputItems.list(third.id, { order: "asc" })).data);
    const reference = { type: "item_reference" as const, id: first.output[0]?.id ?? "" };
    await two.responses.create({ ...BRIEF, input: [{ role: "user", content: "Hello" }, reference] });
    await two.responses.delete(first.id);
    for (const client of [one, two]) {
      await expect(client.responses.retrieve(first.id)).rejects.toThrow(NotFoundError);
      await expect(
        client.responses.create({ ...BRIEF, input: "x", previous_response_id: first.id }),
      ).rejects.toThrow(BadRequestError);
    }
    // What continued it stays.
    expect((await two.responses.retrieve(third.id)).id).toBe(third.id);
  });

  test("that are longer than a message are found too", async () => {
    const [one, two] = await fleetWith({ jetStream: true });
    // Cannot be packed.
    const reasoning = {
      type: "reasoning" as const,
      id: "rs_1",
      summary: [],
      encrypted_content: randomBytes(1_500_000).toString("base64"),
    };
    const input = [reasoning, { role: "user" as const, content: "Hello" }];
    const first = await one.responses.create({ ...BRIEF, input });
    const [here, there] = await Promise.all(
      [one, two].map((client) => client.responses.inputItems.list(first.id)),
    );
    expect(JSON.stringify(here?.data).length).toBeGreaterThan(2_000_000);
    expect(JSON.stringify(there?.data) === JSON.stringify(here?.data)).toBe(true);
  });

  test("belong to the key that made them at every entrance", async () => {
    const [one, two] = await fleetWith({ jetStream: true }, { SERVICE_API_KEYS: "key-a,key-b" });
    const made = await as(one, "key-a").responses.create({ ...BRIEF, input: "Hello" });
    for (const client of [one, two]) {
      expect((await as(client, "key-a").responses.retrieve(made.id)).id).toBe(made.id);
      await expect(as(client, "key-b").responses.retrieve(made.id)).rejects.toThrow(NotFoundError);
    }
  });

  test.each<[string, NatsOptions, string]>([
    ["is missing", {}, "files, batches and responses are not shared now"],
    ["has no room", { jetStream: { maxFileBytes: 1e6 } }, WARNING],
  ])("stay on their machine, with one warning, where JetStream %s", async (_what, options, warning) => {
    const [one, two] = await fleetWith(options);
    const first = await one.responses.create({ ...BRIEF, input: "Hello" });
    const second = await one.responses.create({ ...BRIEF, input: "And?", previous_response_id: first.id });
    expect((await one.responses.retrieve(second.id)).id).toBe(second.id);
    await expect(two.responses.retrieve(second.id)).rejects.toThrow(NotFoundError);
    expect(daemons[0]?.logs().split(warning)).toHaveLength(2);
  });

  test.skipIf(PRLIMIT === null)("stay on their machine when JetStream's disk is full", async () => {
    // Files cannot grow beyond this, as on a full disk.
    const [one] = await fleetWith({ jetStream: true, through: [PRLIMIT ?? "", "--fsize=200000"] });
    let last: string | null = null;
    for (let turn = 0; turn < 8 && daemons[0]?.logs().includes(WARNING) !== true; turn += 1) {
      const metadata = { note: randomBytes(45_000).toString("base64") };
      const made: { id: string } = await one.responses.create({
        ...BRIEF,
        input: "Hello",
        metadata,
        previous_response_id: last,
      });
      last = made.id;
    }
    expect(daemons[0]?.logs()).toContain(WARNING);
    expect((await one.responses.retrieve(last ?? "")).id).toBe(last);
  });

  test("are found again when the NATS server has been restarted", async () => {
    const [one, two] = await fleetWith({ jetStream: true });
    const first = await one.responses.create({ ...BRIEF, input: "Hello" });
    const [server] = servers;
    await server?.kill("SIGKILL");
    const alone = await one.responses.create({ ...BRIEF, input: "And?", previous_response_id: first.id });
    expect(alone.status).toMatch(/completed|incomplete/);
    // What only another machine has cannot be asked for; nothing is deleted that the others would keep.
    const unreachable = { status: 503, code: "fleet_unreachable" };
    const asks = [
      two.responses.retrieve(first.id),
      two.responses.inputItems.list(first.id),
      two.responses.create({ ...BRIEF, input: "And?", previous_response_id: first.id }),
      one.responses.delete(first.id),
    ];
    for (const ask of await Promise.allSettled(asks))
      expect(ask).toMatchObject({ status: "rejected", reason: unreachable });
    expect((await one.responses.retrieve(first.id)).id).toBe(first.id);
    await server?.restart();
    await expect
      .poll(() =>
        two.responses.retrieve(first.id).then(
          ({ id }) => id,
          () => "",
        ),
      )
      .toBe(first.id);
  });

  test("survive the end of one server of a cluster", async () => {
    const cluster = await startNatsCluster(3);
    servers.push(...cluster);
    const [one, two] = await clientsAt(cluster.map(({ url }) => url).join(","));
    const first = await one.responses.create({ ...BRIEF, input: "Hello" });
    expect((await two.responses.retrieve(first.id)).id).toBe(first.id);
    await cluster[0]?.kill("SIGKILL");
    await expect
      .poll(() =>
        two.responses.retrieve(first.id).then(
          ({ id }) => id,
          () => "",
        ),
      )
      .toBe(first.id);
  });
});

async function fleetWith(options: NatsOptions, env: Record<string, string> = {}): Promise<[OpenAI, OpenAI]> {
  const server = await startNats(options);
  servers.push(server);
  return await clientsAt(server.url, env);
}

async function clientsAt(nats: string, env: Record<string, string> = {}): Promise<[OpenAI, OpenAI]> {
  const start = async (name: string): Promise<OpenAI> => {
    const daemon = await startDaemon({ env: { SERVICE_FLEET_NATS: nats, SERVICE_FLEET_NAME: name, ...env } });
    daemons.push(daemon);
    return new OpenAI({ baseURL: `${daemon.url}/v1`, apiKey: "any", maxRetries: 0 });
  };
  return [await start("one"), await start("two")];
}

function as(client: OpenAI, apiKey: string): OpenAI {
  return client.withOptions({ apiKey });
}
