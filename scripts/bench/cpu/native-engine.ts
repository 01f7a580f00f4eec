import { type ChildProcess, execFile, fork } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import type { BenchEngine, BenchSettings } from "./bench-engine.ts";
import { benchPrompt } from "./bench-models.ts";

/** llama.cpp as it was built by the authors of this package; bench-only, and never installed into the project. */
const PACKAGE = "node-llama-cpp";
const PACKAGE_VERSION = "3.22.1";

/** The package's binaries for the CPU; its optional dependencies would bring those for GPUs as well. */
const BINARIES: Readonly<Record<string, string>> = {
  "linux-x64": "linux-x64",
  "linux-arm64": "linux-arm64",
  "darwin-x64": "mac-x64",
  "darwin-arm64": "mac-arm64-metal",
  "win32-x64": "win-x64",
  "win32-arm64": "win-arm64",
};

const RUNNER = "native-runner.mjs";
/** A library of llama.cpp's for one kind of processor, such as haswell: AVX2 and no more. */
const BUILD_OF_PROCESSOR = /^(?:lib)?ggml-cpu-(\w+)\.(?:so|dll|dylib)$/;

const answerSchema = z.object({
  id: z.int(),
  version: z.string().optional(),
  features: z.string().optional(),
  prefill: z.number().optional(),
  decode: z.number().optional(),
  streams: z.number().optional(),
  problem: z.string().optional(),
});
type Answer = z.infer<typeof answerSchema>;

/**
 * Installs native llama.cpp into a folder, unless it is there.
 * @param processor the kind of processor whose build is run, by the package's name for it; absent: llama.cpp chooses the best
 *   for this processor
 * @throws Error when that build does not exist
 */
export async function installNative(folder: string, processor?: string): Promise<void> {
  const binaries = BINARIES[`${process.platform}-${process.arch}`];
  if (binaries === undefined)
    throw new Error(`${PACKAGE} has no binary for this platform; use --without native`);
  if (existsSync(path.join(folder, "node_modules", PACKAGE, "package.json"))) return;
  mkdirSync(folder, { recursive: true });
  const packages = [PACKAGE, `@node-llama-cpp/${binaries}`].map((name) => `${name}@${PACKAGE_VERSION}`);
  // Its install script would look for a compiler where no prebuilt binary fits.
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"];
  await promisify(execFile)("npm", ["install", "--prefix", folder, ...flags, ...packages], {
    shell: process.platform === "win32",
  });
  if (processor === undefined) return;
  const libraries = path.join(folder, "node_modules/@node-llama-cpp", binaries, "bins", binaries);
  const builds = readdirSync(libraries).filter((name) => BUILD_OF_PROCESSOR.test(name));
  const others = builds.filter((name) => BUILD_OF_PROCESSOR.exec(name)![1] !== processor);
  if (others.length === builds.length) {
    rmSync(folder, { recursive: true });
    const known = builds.map((name) => BUILD_OF_PROCESSOR.exec(name)![1]).join(", ");
    throw new Error(`${PACKAGE} has no build for ${processor}, but for ${known}`);
  }
  for (const name of others) rmSync(path.join(libraries, name));
}

/** Starts native llama.cpp in a separate process, on the CPU only. */
export async function startNativeEngine(folder: string, settings: BenchSettings): Promise<BenchEngine> {
  copyFileSync(path.join(import.meta.dirname, RUNNER), path.join(folder, RUNNER));
  const child = fork(path.join(folder, RUNNER), [JSON.stringify(settings)], { cwd: folder, stdio: "ignore" });
  const { version, features } = await answerOf(child);
  let calls = 0;
  const call = async (
    kind: "measure" | "streams",
    prompts: readonly number[][],
    tokens: number,
    depth = 0,
  ) => {
    const id = ++calls;
    child.send({ id, kind, prompts, tokens, depth });
    const answer = await answerOf(child);
    if (answer.problem !== undefined) throw new Error(`native llama.cpp: ${answer.problem}`);
    if (answer.id !== id) throw new Error("native llama.cpp answered another call");
    return answer;
  };
  return {
    version: `llama.cpp ${version} of ${PACKAGE} ${PACKAGE_VERSION}, ${features}`,
    async measure({ depth = 0, promptTokens, tokens }, salt) {
      const { prefill = NaN, decode = NaN } = await call(
        "measure",
        [benchPrompt(depth + promptTokens, salt, depth).ids],
        tokens,
        depth,
      );
      return { prefill, decode };
    },
    async measureStreams(streams, { promptTokens, tokens }, salt) {
      const prompts = Array.from(
        { length: streams },
        (_, stream) => benchPrompt(promptTokens, salt * streams + stream).ids,
      );
      return (await call("streams", prompts, tokens)).streams ?? NaN;
    },
    async close() {
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
    },
  };
}

/** Calls are made one after another, so the next message is the answer. */
async function answerOf(child: ChildProcess): Promise<Answer> {
  const ended = Promise.withResolvers<never>();
  const onExit = (code: number | null): void =>
    ended.reject(new Error(`native llama.cpp ended with code ${code}`));
  child.once("exit", onExit);
  try {
    const [message]: unknown[] = await Promise.race([once(child, "message"), ended.promise]);
    return answerSchema.parse(message);
  } finally {
    child.off("exit", onExit);
  }
}
