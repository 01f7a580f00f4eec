import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { StateFile } from "../../../../src/models/registry/state-file.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const STATE_FILE = new URL("../../../../src/models/registry/state-file.ts", import.meta.url).href;
/** Program that prints a line when it begins to write, and then writes endlessly. */
const WRITER = `
  import { StateFile } from ${JSON.stringify(STATE_FILE)};
  const state = await StateFile.open(process.argv[1], { warn() {} });
  for (let count = 0; ; count++) {
    const files = Array.from({ length: 500 }, (_, index) => ({ alias: "model-" + index, path: "/round/" + count }));
    await state.update((current) => ({ ...current, files }));
    if (count === 3) process.stdout.write("writing");
  }
`;
const KILLS = 3;

it("the state file is complete after its writer was killed during a write", async () => {
  const folder = await temporaryFolder();
  for (let round = 0; round < KILLS; round++) {
    const writer = spawn(process.execPath, ["--input-type=module", "-e", WRITER, folder], {
      cwd: fileURLToPath(new URL(".", import.meta.url)),
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(writer.stdout, "data");
    writer.kill("SIGKILL");
    await once(writer, "exit");
    const warnings: unknown[] = [];

    const { current } = await StateFile.open(folder, {
      warn: (...all: unknown[]) => void warnings.push(all),
    });

    expect(warnings).toEqual([]);
    expect(current.files).toHaveLength(500);
    expect(new Set(current.files.map(({ path }) => path)).size).toBe(1);
  }
});
