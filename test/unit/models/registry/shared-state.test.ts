import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { expect, it } from "vitest";
import { StateFile } from "../../../../src/models/registry/state-file.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const STATE_FILE = new URL("../../../../src/models/registry/state-file.ts", import.meta.url).href;
/** Program that adds definitions and prints `begin`, and then the name of each that is on disk. */
const WRITER = `
  import { StateFile } from ${JSON.stringify(STATE_FILE)};
  const [folder, name, count] = process.argv.slice(1);
  const state = await StateFile.open(folder, { warn() {} });
  process.stdout.write("begin\\n");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  for (let index = 0; index < Number(count); index++) {
    const alias = name + "-" + index;
    await state.update((now) => ({ ...now, definitions: [...now.definitions, { alias, modelfile: "FROM x" }] }));
    process.stdout.write(alias + "\\n");
  }
  process.exit();
`;

interface Writer {
  readonly process: ChildProcess;
  /** Names that the process has reported to be on disk. */
  readonly saved: () => string[];
  /** Resolves when the process has printed a number of lines. */
  readonly until: (lines: number) => Promise<void>;
}

function startWriter(folder: string, name: string, count: number): Writer {
  const args = ["--input-type=module", "-e", WRITER, folder, name, String(count)];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  const lines = (): string[] => output.split("\n").slice(0, -1);
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  return {
    process: child,
    saved: () => lines().slice(1),
    async until(wanted) {
      while (lines().length < wanted) await once(child.stdout, "data");
    },
  };
}

async function namesIn(folder: string): Promise<string[]> {
  const { current } = await StateFile.open(folder, { warn: () => {} });
  return current.definitions.map(({ alias }) => alias).toSorted();
}

it("the state file keeps every change of several processes that write at the same time", async () => {
  const folder = await temporaryFolder();
  const writers = ["a", "b", "c"].map((name) => startWriter(folder, name, 40));
  await Promise.all(writers.map(async ({ until }) => await until(1)));
  const ends = writers.map(async (writer) => await once(writer.process, "close"));

  for (const writer of writers) writer.process.stdin?.write("go\n");
  await Promise.all(ends);

  const saved = writers.flatMap((writer) => writer.saved());
  expect(saved).toHaveLength(120);
  expect(await namesIn(folder)).toEqual(saved.toSorted());
});

it("a change succeeds immediately after a process was killed during one, and no change is lost", async () => {
  const folder = await temporaryFolder();
  const saved: string[] = [];
  const state = await StateFile.open(folder, { warn: () => {} });
  for (let round = 0; round < 2; round++) {
    const writer = startWriter(folder, `round${round}`, 10_000);
    await writer.until(1);
    writer.process.stdin?.write("go\n");
    await writer.until(10);
    writer.process.kill("SIGKILL");
    await once(writer.process, "close");
    saved.push(...writer.saved());
    const killedAt = performance.now();

    await state.update((now) => ({ ...now, defaultAlias: `round${round}` }));

    // Waiting for a lock fails after half a minute.
    expect(performance.now() - killedAt).toBeLessThan(15_000);
    expect(await namesIn(folder)).toEqual(expect.arrayContaining(saved));
  }
  expect((await readdir(folder)).toSorted()).toEqual(["daybreak.lock", "models.json"]);
});
