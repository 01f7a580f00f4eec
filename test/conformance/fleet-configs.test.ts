import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { systemdUnit } from "../../src/cli/service/systemd.ts";
import { SILENCE_TIMEOUT_MS } from "../../src/fleet/presence.ts";
import { fleetSchema } from "../../src/api/wire/machines.ts";
import { findProgram } from "../support/find-program.ts";
import { both, need } from "../support/need.ts";
import { NATS, type NatsServer, startNats, startNatsCluster } from "../support/nats-server.ts";
import { postJson } from "../support/post-json.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const FOLDER = path.join(import.meta.dirname, "../../configs/fleet");
const PASSWORDS = {
  DAYBREAK_MACHINE_PASSWORD: "m0123abc",
  DAYBREAK_OBSERVER_PASSWORD: "o0123abc",
  NATS_ADMIN_PASSWORD: "a0123abc",
};
const SYSTEMD_ANALYZE = findProgram("systemd-analyze");
const SERVER_AND_SYSTEMD = both(NATS, need("systemd-analyze", SYSTEMD_ANALYZE !== null));
const PYTHON = findProgram("python3");
const HAS_PYTHON = need("python3", PYTHON !== null);

const servers: NatsServer[] = [];
const daemons: TestDaemon[] = [];
const connections: NatsConnection[] = [];
afterEach(async () => {
  await Promise.all(connections.splice(0).map((connection) => connection.close()));
  await Promise.all(daemons.splice(0).map((daemon) => daemon.stop()));
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

const BRIEF = { model: "daybreak-mini", input: "Hello", max_output_tokens: 1 };

describe.skipIf(NATS.isMissing)(`configs/fleet/nats.conf${NATS.note}`, () => {
  test("has machines join over TLS with their password, and with no other", async () => {
    const server = await start();
    const [one, two] = await Promise.all([join("one", [server]), join("two", [server])]);
    await seeEachOther(2);
    const made = await postJson(`${one.url}/v1/responses`, BRIEF);
    const { id } = z.object({ id: z.string() }).parse(await made.json());
    const kept = `/v1/responses/${id}`;
    expect((await fetch(two.url + kept)).status).toBe(200);
    expect((await fetch(two.url + kept, { method: "DELETE" })).status).toBe(200);
    expect((await fetch(one.url + kept)).status).toBe(404);
    const line = { custom_id: "1", method: "POST", url: "/v1/responses", body: BRIEF };
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new File([JSON.stringify(line)], "in.jsonl"));
    const uploaded = await fetch(`${one.url}/v1/files`, { method: "POST", body: form });
    const file = z.object({ id: z.string() }).parse(await uploaded.json());
    const batch = await postJson(`${two.url}/v1/batches`, {
      input_file_id: file.id,
      endpoint: "/v1/responses",
      completion_window: "24h",
    });
    const created = z.object({ id: z.string() }).parse(await batch.json());
    await expect
      .poll(async () => await (await fetch(`${one.url}/v1/batches/${created.id}`)).json())
      .toMatchObject({ status: "completed", request_counts: { completed: 1 } });
    const wrong = await join("wrong", [server], "another");
    await expect.poll(() => wrong.logs()).toMatch(/refuses the user and password .* and is tried again/);
    const plain = await startDaemon({ args: ["--fleet-nats", server.url.replace("tls:", "nats:")] });
    daemons.push(plain);
    await expect.poll(() => plain.logs()).toMatch(/is not reachable, and is tried again/);
  });

  test("lets machines use the subjects of the fleet and no others", async () => {
    const server = await start();
    const machine = await as(server, "machine", PASSWORDS.DAYBREAK_MACHINE_PASSWORD);
    machine.subscribe("daybreak.files.x", { callback: (_error, message) => void message.respond("here") });
    expect((await machine.request("daybreak.files.x")).string()).toBe("here");
    for (const subject of [">", "other.fleet", "$SYS.>", "$JS.API.>"]) {
      expect(await refusal(machine, subject)).toMatch(/permissions violation/i);
    }
    expect((await machine.request("$JS.API.INFO")).string()).toContain("account_info_response");
    // Not answered: the server drops what may not be sent.
    await expect(machine.request("$JS.API.STREAM.CREATE.mine", "{}", { timeout: 500 })).rejects.toThrow(
      /permissions|timeout/i,
    );
  });

  test("lets an observer see who is there, and neither ask nor read answers", async () => {
    const server = await start();
    await join("one", [server]);
    const observer = await as(server, "observer", PASSWORDS.DAYBREAK_OBSERVER_PASSWORD);
    const presence = observer.subscribe("daybreak.presence", { max: 1 });
    for await (const heartbeat of presence)
      expect(heartbeat.json()).toMatchObject({ state: expect.any(String) });
    for (const subject of ["daybreak.>", "daybreak.inbox.>", "daybreak.card.>"]) {
      expect(await refusal(observer, subject)).toMatch(/permissions violation/i);
    }
    await expect(observer.request("daybreak.card.x", "", { timeout: 500 })).rejects.toThrow(
      /permissions|timeout/i,
    );
  });

  test("shows the administrator no message of the fleet", async () => {
    const server = await start();
    await join("one", [server]);
    const admin = await as(server, "admin", PASSWORDS.NATS_ADMIN_PASSWORD);
    let seen = 0;
    admin.subscribe("daybreak.>", { callback: () => void (seen += 1) });
    const heartbeats = await as(server, "observer", PASSWORDS.DAYBREAK_OBSERVER_PASSWORD);
    let beaten = 0;
    heartbeats.subscribe("daybreak.presence", { callback: () => void (beaten += 1) });
    await expect.poll(() => beaten).toBeGreaterThan(2);
    await admin.flush();
    expect(seen).toBe(0);
  });
});

test.skipIf(NATS.isMissing)(
  `configs/fleet/nats-cluster.conf: machines stay together when the server of one of them is killed${NATS.note}`,
  async () => {
    const configFile = path.join(FOLDER, "nats-cluster.conf");
    const cluster = await startNatsCluster(3, { configFile, env: PASSWORDS });
    servers.push(...cluster);
    const [first, second, third] = cluster;
    await join("one", [first, second, third]);
    await join("two", [third, second, first]);
    await seeEachOther(2);
    for (const server of cluster) {
      await server.kill("SIGKILL");
      // As long as it takes to miss a machine.
      await sleep(SILENCE_TIMEOUT_MS + 500);
      await seeEachOther(2);
      await server.restart();
    }
    expect(daemons.map((daemon) => daemon.logs()).join("")).toContain("server is back");
  },
);

describe("configs/fleet/systemd", () => {
  test.skipIf(SERVER_AND_SYSTEMD.isMissing)(
    `has a valid service and drop-in${SERVER_AND_SYSTEMD.note}`,
    () => {
      const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-units-"));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      const daybreak = path.join(folder, "daybreak.service");
      const unit = systemdUnit({
        scope: "system",
        command: ["/bin/true", "serve"],
        env: {},
        stopSeconds: 40,
        gpuGroups: [],
      });
      writeFileSync(daybreak, unit.replace("man:daybreak(1)", "https://example.org"));
      mkdirSync(`${daybreak}.d`);
      writeFileSync(`${daybreak}.d/fleet.conf`, readFileSync(path.join(FOLDER, "systemd/fleet.conf")));
      for (const file of [path.join(FOLDER, "systemd/daybreak-nats.service"), daybreak]) {
        expect(
          execFileSync(SYSTEMD_ANALYZE ?? "", ["verify", file], { encoding: "utf8", stdio: "pipe" }),
        ).toBe("");
      }
    },
  );
});

describe.skipIf(HAS_PYTHON.isMissing)(`manifests in configs/${HAS_PYTHON.note}`, () => {
  const labels = z.record(z.string(), z.string());
  const named = z.object({ name: z.string() });
  const probe = z.object({
    httpGet: z.object({ path: z.string().startsWith("/"), port: z.string() }).optional(),
    tcpSocket: z.object({ port: z.string() }).optional(),
  });
  const statefulSet = z.object({
    spec: z.object({
      serviceName: z.string(),
      selector: z.object({ matchLabels: labels }),
      template: z.object({
        metadata: z.object({ labels }),
        spec: z.object({
          terminationGracePeriodSeconds: z.number().min(31),
          securityContext: z.object({ runAsNonRoot: z.literal(true) }),
          containers: z.tuple([
            z.object({
              ports: z.array(z.object({ name: z.string(), containerPort: z.int() })),
              startupProbe: probe,
              readinessProbe: probe,
              livenessProbe: probe,
              volumeMounts: z.array(named),
              securityContext: z.object({
                allowPrivilegeEscalation: z.literal(false),
                readOnlyRootFilesystem: z.literal(true),
              }),
            }),
          ]),
          volumes: z.array(named),
        }),
      }),
      volumeClaimTemplates: z.array(z.object({ metadata: named })),
    }),
  });
  const object = z.looseObject({ apiVersion: z.string(), kind: z.string(), metadata: named });

  test("of Kubernetes name only what they define", () => {
    const objects = read("kubernetes.yaml").map((document) => object.parse(document));
    const names = (kind: string) =>
      objects.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name);
    const sets = objects
      .filter(({ kind }) => kind === "StatefulSet")
      .map((each) => statefulSet.parse(each).spec);
    expect(sets).toHaveLength(2);
    const podLabels = sets.map(({ template }) => JSON.stringify(template.metadata.labels));
    for (const { serviceName, selector, template, volumeClaimTemplates } of sets) {
      const [container] = template.spec.containers;
      expect(names("Service")).toContain(serviceName);
      expect(selector.matchLabels).toEqual(template.metadata.labels);
      const volumes = [...template.spec.volumes, ...volumeClaimTemplates.map(({ metadata }) => metadata)];
      expect(container.volumeMounts.map(({ name }) => name).toSorted()).toEqual(
        volumes.map(({ name }) => name).toSorted(),
      );
      const ports = container.ports.map(({ name }) => name);
      for (const { httpGet, tcpSocket } of [
        container.startupProbe,
        container.readinessProbe,
        container.livenessProbe,
      ])
        expect(ports).toContain(httpGet?.port ?? tcpSocket?.port);
    }
    for (const each of objects.filter(({ kind }) => kind === "Service")) {
      const { selector } = z.object({ selector: labels }).parse(each["spec"]);
      expect(podLabels).toContain(JSON.stringify(selector));
    }
    const scaler = objects.find(({ kind }) => kind === "HorizontalPodAutoscaler");
    const { scaleTargetRef } = z.object({ scaleTargetRef: named }).parse(scaler?.["spec"]);
    expect(names("StatefulSet")).toContain(scaleTargetRef.name);
    const [kustomization] = read("kustomization.yaml");
    expect(z.object({ resources: z.array(z.string()) }).parse(kustomization).resources).toEqual([
      "kubernetes.yaml",
    ]);
  });

  test("scale by metrics that there are", async () => {
    const daemon = await startDaemon();
    daemons.push(daemon);
    const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
    const used = readFileSync(path.join(FOLDER, "kubernetes.yaml"), "utf8").matchAll(
      /metric: \{ name: (\w+) \}/g,
    );
    const scaling = [...used].map(([, name]) => name ?? "");
    expect(scaling.length).toBeGreaterThan(0);
    for (const name of scaling) expect(metrics).toContain(`\n${name} `);
  });

  test("of compose mount files that there are, or that the first lines tell of", () => {
    const services = z.object({
      services: z.record(z.string(), z.looseObject({ volumes: z.array(z.string()) })),
    });
    const sources = [["compose.yaml", "../container"] as const, ["compose-nats.yaml", "."] as const].flatMap(
      ([file, base]) =>
        Object.values(services.parse(read(file)[0]).services).flatMap(({ volumes }) =>
          volumes
            .filter((each) => each.startsWith("."))
            .map((each) => path.join(FOLDER, base, each.split(":")[0] ?? "")),
        ),
    );
    const untold = sources.filter((source) => !source.startsWith(path.join(FOLDER, "tls")));
    expect(untold.length).toBeGreaterThan(0);
    expect(untold.filter((source) => !existsSync(source))).toEqual([]);
  });
});

async function join(
  name: string,
  at: readonly (NatsServer | undefined)[],
  password = PASSWORDS.DAYBREAK_MACHINE_PASSWORD,
): Promise<TestDaemon> {
  const urls = at.flatMap((server) => (server ? server.url.replace("//", `//machine:${password}@`) : []));
  const ca = at[0]?.certificate.ca ?? "";
  const env = { SERVICE_FLEET_NATS: urls.join(","), SERVICE_FLEET_TLS_CA: ca, SERVICE_FLEET_NAME: name };
  const daemon = await startDaemon({ env });
  daemons.push(daemon);
  return daemon;
}

async function seeEachOther(count: number): Promise<void> {
  for (const { url } of daemons) {
    const seen = async () =>
      fleetSchema.parse(await (await fetch(`${url}/api/fleet`)).json()).machines.length;
    await expect.poll(seen).toBe(count);
  }
}

/** Subscribes, and returns the error of the server. */
async function refusal(connection: NatsConnection, subject: string): Promise<string> {
  return await new Promise((resolve) => {
    connection.subscribe(subject, { callback: (error) => resolve(String(error)) });
    void connection.flush().then(() => setTimeout(() => resolve("allowed"), 200));
  });
}

async function start(): Promise<NatsServer> {
  const server = await startNats({ configFile: path.join(FOLDER, "nats.conf"), env: PASSWORDS });
  servers.push(server);
  return server;
}

async function as(server: NatsServer, user: string, pass: string): Promise<NatsConnection> {
  const tls = { caFile: server.certificate.ca };
  const inboxPrefix = "daybreak.inbox";
  const connection = await connect({ servers: server.url, user, pass, tls, inboxPrefix, reconnect: false });
  connections.push(connection);
  return connection;
}

/** The documents of a YAML file, read by a strict parser. */
function read(file: string): unknown[] {
  const program = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
  const name = path.join(FOLDER, file);
  return z
    .array(z.unknown())
    .parse(JSON.parse(execFileSync(PYTHON ?? "", ["-c", program, name], { encoding: "utf8" })));
}
