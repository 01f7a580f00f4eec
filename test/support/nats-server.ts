import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { requireOnCi } from "./require-on-ci.ts";

const START_DEADLINE_MS = 20_000;

/** Whether this machine has a NATS server; on CI it must. */
export const hasNatsServer = spawnSync("nats-server", ["--version"]).status === 0;
requireOnCi("nats-server", hasNatsServer);

/** A NATS server in a process of its own, on a free port of 127.0.0.1. */
export interface TestNats {
  /** For `fleet.nats`. */
  readonly url: string;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** @param config further lines of its configuration */
export async function startNats(config = ""): Promise<TestNats> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-nats-"));
  const port = await freePort();
  const file = path.join(folder, "nats.conf");
  writeFileSync(
    file,
    `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${folder.replaceAll("\\", "/")}" }\n${config}`,
  );
  let child = await start(file, port);
  return {
    url: `nats://127.0.0.1:${port}`,
    kill: async () => await end(child),
    restart: async () => {
      child = await start(file, port);
    },
    async stop() {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function start(file: string, port: number): Promise<ChildProcess> {
  const child = spawn("nats-server", ["-c", file], { stdio: "ignore" });
  process.once("exit", () => child.kill("SIGKILL"));
  const deadline = performance.now() + START_DEADLINE_MS;
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error("nats-server did not start");
    await sleep(20);
  }
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.once("data", () => resolve(true)).once("error", () => resolve(false));
    socket.once("data", () => socket.destroy());
  });
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("no free port");
  return address.port;
}
