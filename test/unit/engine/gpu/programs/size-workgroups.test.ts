import fs from "node:fs";
import vm from "node:vm";
import { expect, test } from "vitest";
import {
  type ProgramClasses,
  type ShaderModuleDescriptor,
  sizeWorkgroups,
} from "../../../../../src/engine/gpu/programs/size-workgroups.ts";
import { STOCK_WASM_PATH } from "../../../../../src/engine/engine-image.ts";

/** Templates of llama.cpp's programs that contain a text, from its WASM. */
const templates = fs
  .readFileSync(STOCK_WASM_PATH, "latin1")
  .split("\0")
  .filter((text) => text.includes("@compute"));

/** Expands a template with all of its parts, for workgroups of this size. */
function withThreads(template: string, threads: number): string {
  return template
    .replaceAll("OUTPUTS_PER_WG", "4")
    .replaceAll("WG_SIZE", String(threads))
    .replaceAll("THREADS_PER_BLOCK", "16");
}

/** Code that a device gets for a program. */
function given(code: string, isFallbackAdapter: boolean, size = sizeWorkgroups): string {
  const seen: ShaderModuleDescriptor[] = [];
  const prototype = {
    adapterInfo: { isFallbackAdapter },
    createShaderModule: (descriptor: ShaderModuleDescriptor) => {
      seen.push(descriptor);
      return {};
    },
  };
  const classes: ProgramClasses = { GPUDevice: { prototype } };
  size(classes);
  classes.GPUDevice.prototype.createShaderModule({ label: "program", code });
  expect(seen[0]?.label).toBe("program");
  return seen[0]?.code ?? "";
}

test("the number of threads is replaced everywhere in llama.cpp's vector products, and no other number", () => {
  const products = templates.filter((text) => text.includes("fn accumulate_vec_dot("));
  // For matrices, and for the matrices of experts; each alone and with parts of other files.
  expect(products.length).toBeGreaterThanOrEqual(2);
  for (const product of products) {
    expect(product).toContain("@workgroup_size(WG_SIZE)");
    expect(given(withThreads(product, 256), true)).toBe(withThreads(product, 32));
  }
});

test("the scan of a mask has one thread per position", () => {
  const scans = templates.filter((text) => text.includes("var<workgroup> wg_any:"));
  expect(scans).toHaveLength(1);
  const scan = String(scans[0])
    .replace(/#(?:ifndef|define|endif).*\n/g, "")
    .replaceAll("KV_TILE", "32");
  expect(given(withThreads(scan, 1024), false)).toBe(withThreads(scan, 32));
  // A GPU that allows fewer threads than there are positions keeps its number.
  expect(given(withThreads(scan, 16), false)).toBe(withThreads(scan, 16));
});

test("vector products keep their threads on a GPU, and other programs everywhere", () => {
  const product = withThreads(String(templates.find((text) => text.includes("fn accumulate_vec_dot("))), 256);
  expect(given(product, false)).toBe(product);
  expect(given(product, true)).not.toBe(product);
  const other = "@compute @workgroup_size(256) fn main() { for (var k = 0; k < 9; k += 256) {} }";
  expect(given(other, true)).toBe(other);
});

test("the function works from its text alone, as in a page's worker", () => {
  const product = withThreads(String(templates.find((text) => text.includes("fn accumulate_vec_dot("))), 256);
  const alone: typeof sizeWorkgroups = vm.runInThisContext(`(${sizeWorkgroups.toString()})`);
  expect(given(product, true, alone)).toBe(given(product, true));
});
