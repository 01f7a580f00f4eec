import path from "node:path";
import { describe, expect, it } from "vitest";
import { restrictedProcess } from "../../../src/engine/launch.ts";

const SOURCE = path.resolve(import.meta.dirname, "../../../src");
const READ = "--allow-fs-read=";

/** Paths that a process may read, relative to the source folder. */
function readablePaths(...start: Parameters<typeof restrictedProcess>): string[] {
  return restrictedProcess(...start)
    .args.filter((arg) => arg.startsWith(READ))
    .map((arg) => path.relative(SOURCE, arg.slice(READ.length)).replaceAll("\\", "/"));
}

describe("restrictedProcess()", () => {
  it("lets a process read the folders of the modules that it imports, and the given files", () => {
    const readable = readablePaths("sandbox/trial-process", { files: [path.join(SOURCE, "model.gguf")] });
    expect(readable).toEqual(
      expect.arrayContaining(["engine/sandbox", "engine/channel", "json", "model.gguf"]),
    );
    expect(readable).not.toContain("engine");
    expect(readable.filter((each) => each.includes("node_modules"))).toEqual([]);
  });

  it("lets a process read the packages that it imports", () => {
    const readable = readablePaths("host/engine-main", {});
    const packages = readable.flatMap((each) => /.*node_modules\/(.+)/.exec(each)?.[1] ?? []);
    expect(packages.toSorted()).toEqual(["@jsquash/webp", "@wllama/wllama", "zod"]);
  });

  it("does not let a process read the rest of the daemon", () => {
    const readable = readablePaths("host/engine-main", { modules: ["gpu/calls/open-gpu"] });
    expect(
      readable.filter(
        (each) => /^(http|api|models|fleet|daemon|\.|$)/.test(each) && !/wasm|node_modules/.test(each),
      ),
    ).toEqual([]);
  });

  it("allows native addons and passes driver variables only with a GPU", () => {
    expect(restrictedProcess("host/engine-main", {}).args).not.toContain("--allow-addons");
    expect(Object.keys(restrictedProcess("host/engine-main", {}).env)).toEqual(["MALLOC_ARENA_MAX"]);
    const { args, env } = restrictedProcess("gpu/probe-process", { gpu: { dawnPath: "/opt/dawn/index.js" } });
    expect(args).toEqual(
      expect.arrayContaining(["--allow-addons", `${READ}${path.join("/opt/dawn", path.sep)}`]),
    );
    expect(Object.keys(env)).toContain("PATH");
  });
});
