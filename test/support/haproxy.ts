import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { findProgram } from "./find-program.ts";
import { freePorts } from "./free-ports.ts";

/** HAProxy as Debian has it; null where it is not installed, and an error on CI. */
export const HAPROXY = findProgram("haproxy");
const START_DEADLINE_MS = 30_000;
const LOOK_EVERY_MS = 20;

export interface Proxy {
  readonly url: string;
  logs(): string;
  stop(): Promise<void>;
}

/**
 * Starts HAProxy with a configuration that listens where DAYBREAK_LISTEN says, and waits until it answers.
 * @param env further variables that the configuration uses
 */
export async function startHaproxy(
  configFile: string,
  env: Readonly<Record<string, string>>,
): Promise<Proxy> {
  if (HAPROXY === null) throw new Error("HAProxy is not installed: run .ci/install-nats");
  const [port] = await freePorts(1);
  const address = `127.0.0.1:${port}`;
  const child = spawn(HAPROXY, ["-db", "-f", configFile], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env, DAYBREAK_LISTEN: address },
  });
  const killOnExit = (): void => void child.kill("SIGKILL");
  process.once("exit", killOnExit);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  }
  const exited = once(child, "close").finally(() => process.off("exit", killOnExit));
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  const deadline = Date.now() + START_DEADLINE_MS;
  while (!(await isListening(address))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`HAProxy did not start:\n${text}`);
    }
    await sleep(LOOK_EVERY_MS);
  }
  return { url: `http://${address}`, logs: () => text, stop };
}

async function isListening(address: string): Promise<boolean> {
  return await fetch(`http://${address}/health`).then(
    () => true,
    () => false,
  );
}
