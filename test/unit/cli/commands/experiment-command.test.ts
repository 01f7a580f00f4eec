import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseExperiment, printExperiment } from "../../../../src/experiments/experiments.ts";
import { EXPERIMENT, RESULT, token } from "../../experiments/sample-experiment.ts";
import { type FakeRoutes, startFakeDaemon } from "../fake-daemon.ts";
import { runCli } from "../run-cli.ts";

const FILES = {
  alias: "daybreak-mini",
  files: [{ role: "model", name: "m.gguf", size_bytes: 1, sha256: "a".repeat(64), url: "/" }],
  modelfile: "FROM m",
};
const { request } = EXPERIMENT;
const RED = {
  ...RESULT,
  text: "The sky is red.",
  tokens: [...RESULT.tokens.slice(0, 3), token(7, " red"), token(5, ".")],
};

let folder: string;
beforeEach(() => void (folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-experiment-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(name: string, experiment = EXPERIMENT): string {
  const file = path.join(folder, name);
  writeFileSync(file, printExperiment(experiment));
  return file;
}

const routes: FakeRoutes = {
  "POST /api/experiment": RESULT,
  "GET /api/models/daybreak-mini/files": FILES,
};

describe("daybreak experiment run", () => {
  test("succeeds when the result equals the recorded one", async () => {
    await using daemon = await startFakeDaemon(routes);
    const run = await runCli(["experiment", "run", fileOf("a.json"), "--url", daemon.url]);
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toBe("The sky is blue.\nSame: 5 tokens, log-probabilities equal to the last bit.\n");
    expect(daemon.requests.at(-1)?.body).toEqual({ ...request, model: "daybreak-mini" });
  });

  test("fails and shows the first difference to the recorded result", async () => {
    await using daemon = await startFakeDaemon({ ...routes, "POST /api/experiment": RED });
    const run = await runCli(["experiment", "run", fileOf("a.json"), "--url", daemon.url]);
    expect(run.code).toBe(1);
    expect(run.stdout).toContain("Differs at token 4 (of 5 and 5)");
    expect(run.stdout).toContain('recorded "The sky is" + " blue" (60.7 %)');
    expect(run.stdout).toContain('now      "The sky is" + " red" (60.7 %)');
    expect(run.stderr).toContain("The results differ.");
  });

  test("fails for log-probabilities that differ by more than --tolerance", async () => {
    const moved = { ...RESULT, tokens: [token(1, "The", -0.51), ...RESULT.tokens.slice(1)] };
    await using daemon = await startFakeDaemon({ ...routes, "POST /api/experiment": moved });
    const args = ["experiment", "run", fileOf("a.json"), "--url", daemon.url];
    expect(await runCli(args)).toMatchObject({ code: 0 });
    expect(await runCli([...args, "--tolerance", "0.1"])).toMatchObject({ code: 0 });
    const strict = await runCli([...args, "--tolerance", "0"]);
    expect(strict.code).toBe(1);
    expect(strict.stderr).toContain("more than --tolerance 0");
  });

  test("writes the new result to the file of -o", async () => {
    await using daemon = await startFakeDaemon({ ...routes, "POST /api/experiment": RED });
    const output = path.join(folder, "new.json");
    await runCli(["experiment", "run", fileOf("a.json"), "-o", output, "--url", daemon.url]);
    expect(parseExperiment(readFileSync(output, "utf8"))).toEqual({ ...EXPERIMENT, result: RED });
  });

  test("refuses another model of the same name without --any-model", async () => {
    const other = { ...FILES, files: [{ ...FILES.files[0], sha256: "b".repeat(64) }] };
    await using daemon = await startFakeDaemon({ ...routes, "GET /api/models/daybreak-mini/files": other });
    const args = ["experiment", "run", fileOf("a.json"), "--url", daemon.url];
    const refused = await runCli(args);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("--any-model");
    expect(daemon.requests.some(({ method }) => method === "POST")).toBe(false);
    expect(await runCli([...args, "--any-model"])).toMatchObject({ code: 0 });
  });

  test.each([
    ["a missing file", ["nowhere.json"], /cannot be read/],
    ["no file", [], /Name one file/],
  ])("refuses %s", async (_what, words, reason) => {
    const run = await runCli(["experiment", "run", ...words]);
    expect(run.code).toBe(2);
    expect(run.stderr).toMatch(reason);
  });

  test("refuses a file that is not an experiment", async () => {
    const file = path.join(folder, "x.json");
    writeFileSync(file, "{}");
    const run = await runCli(["experiment", "run", file]);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain("This is not an experiment: experiment: ");
  });
});

describe("daybreak experiment record", () => {
  test("writes the request, the model files and the result", async () => {
    await using daemon = await startFakeDaemon({
      ...routes,
      "GET /api/models/daybreak-mini": { source: "hub", from: "hf:a/b:Q8_0" },
    });
    const output = path.join(folder, "new.json");
    const words = ["What", "color is the sky?"];
    const sampling = ["-t", "0", "-s", "Be short.", "--seed", "4"];
    const args = ["experiment", "record", ...words, ...sampling, "-o", output, "--url", daemon.url];
    const run = await runCli(args);
    expect(run).toMatchObject({ code: 0, stderr: `Recorded in ${output}.\n` });
    expect(parseExperiment(readFileSync(output, "utf8"))).toEqual({
      experiment: 1,
      model: { name: "daybreak-mini", source: "hf:a/b:Q8_0", files: EXPERIMENT.model.files },
      request: {
        messages: [
          { role: "system", content: "Be short." },
          { role: "user", content: "What color is the sky?" },
        ],
        temperature: 0,
        seed: 4,
      },
      result: RESULT,
    });
  });

  test("refuses an empty prompt", async () => {
    expect(await runCli(["experiment", "record"])).toMatchObject({ code: 2 });
  });
});

describe("daybreak experiment diff", () => {
  test("exits with 0 for equal results and with 1 for different ones", async () => {
    const [blue, red] = [fileOf("blue.json"), fileOf("red.json", { ...EXPERIMENT, result: RED })];
    expect(await runCli(["experiment", "diff", blue, blue])).toMatchObject({ code: 0 });
    expect((await runCli(["experiment", "diff", blue, red])).stdout).toMatch(
      / first .* " blue" .* second .* " red"/s,
    );
    const run = await runCli(["experiment", "diff", blue, red, "--json"]);
    expect(run.code).toBe(1);
    expect(JSON.parse(run.stdout)).toMatchObject({ isSame: false, sameTokens: 3, left: { token: " blue" } });
  });

  test("names the file without a result", async () => {
    const { result: _, ...planned } = EXPERIMENT;
    const run = await runCli(["experiment", "diff", fileOf("a.json"), fileOf("b.json", planned)]);
    expect(run.code).toBe(2);
    expect(run.stderr).toContain("b.json has no result");
  });
});
