import fs from "node:fs";
import path from "node:path";
import { findDawn } from "../../src/engine/gpu/probe-gpu.ts";

/** How the GPU of a test behaves otherwise than the machine's. */
export interface DawnDouble {
  /** The device is destroyed after so many submissions of work. */
  readonly loseAfter?: number;
  /** Work cannot be submitted any more after so many submissions. */
  readonly throwAfter?: number;
  /** Parameters of programs cannot be written any more after so many submissions. */
  readonly sealAfter?: number;
  /** No work ends any more after so many submissions. */
  readonly hangAfter?: number;
  /** Devices cannot be opened, for this reason. */
  readonly refusal?: string;
  /** Features that adapters seem not to have. */
  readonly without?: readonly string[];
  /** Limits that adapters seem to have in place of their own. */
  readonly limits?: Readonly<Record<string, number>>;
}

/**
 * Writes a package into a folder that is Dawn but for what the double says. It carries a copy of Dawn, because a
 * process that may load it can read its folder alone.
 * @returns the entry file
 */
export function writeDawnDouble(folder: string, double: DawnDouble): string {
  const real = path.dirname(findDawn() ?? "");
  const platform = `${process.platform}-${process.platform === "darwin" ? "universal" : process.arch}`;
  for (const part of ["index.js", "package.json", path.join("dist", platform)]) {
    fs.cpSync(path.join(real, part), path.join(folder, "real", part), { recursive: true });
  }
  const entry = path.join(folder, "index.mjs");
  fs.writeFileSync(entry, doubleSource(double));
  return entry;
}

function doubleSource({
  loseAfter = Infinity,
  throwAfter = Infinity,
  sealAfter = Infinity,
  hangAfter = Infinity,
  refusal,
  without = [],
  limits = {},
}: DawnDouble): string {
  return `
import { create as createReal, globals } from "./real/index.js";
export { globals };

const missing = new Set(${JSON.stringify(without)});
const otherLimits = ${JSON.stringify(limits)};
let device;
let submissions = 0;

const { submit } = globals.GPUQueue.prototype;
globals.GPUQueue.prototype.submit = function (...args) {
  if (++submissions === ${loseAfter}) device?.destroy();
  if (submissions >= ${throwAfter}) throw new Error("no work can be submitted");
  return submit.apply(this, args);
};

const UNIFORM = 0x40;
const { writeBuffer } = globals.GPUQueue.prototype;
globals.GPUQueue.prototype.writeBuffer = function (buffer, ...args) {
  if (submissions >= ${sealAfter} && buffer.usage & UNIFORM) throw new Error("parameters are sealed");
  return writeBuffer.call(this, buffer, ...args);
};

for (const [owner, name] of [[globals.GPUQueue, "onSubmittedWorkDone"], [globals.GPUBuffer, "mapAsync"]]) {
  const plain = owner.prototype[name];
  owner.prototype[name] = function (...args) {
    return submissions < ${hangAfter} ? plain.apply(this, args) : new Promise(() => {});
  };
}

export function create(flags) {
  const gpu = createReal(flags);
  const requestAdapter = gpu.requestAdapter.bind(gpu);
  gpu.requestAdapter = async (options) => {
    const adapter = await requestAdapter(options);
    if (!adapter) return adapter;
    const features = new Set([...adapter.features].filter((feature) => !missing.has(feature)));
    Object.defineProperty(adapter, "features", { value: features });
    const limits = {};
    for (const name in adapter.limits) limits[name] = otherLimits[name] ?? adapter.limits[name];
    Object.defineProperty(adapter, "limits", { value: limits });
    const requestDevice = adapter.requestDevice.bind(adapter);
    adapter.requestDevice = async (descriptor) => {
      const refusal = ${JSON.stringify(refusal ?? null)};
      if (refusal !== null) throw new Error(refusal);
      return (device = await requestDevice(descriptor));
    };
    return adapter;
  };
  return gpu;
}
`;
}
