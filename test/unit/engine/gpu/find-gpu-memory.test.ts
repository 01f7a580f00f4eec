import { expect, test } from "vitest";
import {
  findGpuMemory,
  type MemorySources,
  systemSources,
} from "../../../../src/engine/gpu/find-gpu-memory.ts";
import { card } from "./adapters.ts";

const GIB = 1024 ** 3;

interface Machine {
  readonly files?: Readonly<Record<string, string>>;
  readonly programs?: Readonly<Record<string, string>>;
}

function machine(platform: NodeJS.Platform, { files = {}, programs = {} }: Machine = {}): MemorySources {
  return {
    platform,
    machineMemory: 32 * GIB,
    read: async (file) => files[file],
    list: async (folder) => [
      ...new Set(
        Object.keys(files)
          .filter((file) => file.startsWith(`${folder}/`))
          .map((file) => file.slice(folder.length + 1).split("/", 1)[0] ?? ""),
      ),
    ],
    run: async (program) => programs[program],
  };
}

function adapter(vendor: string, name: string, software = false) {
  return { ...card, vendor, name, description: "", software };
}

const SMI = "NVIDIA GeForce RTX 4070, 12282\nNVIDIA GeForce GTX 1650, 4096\n";

const sysfs = (name: string, vendor: string, own: number, shared: number) => ({
  [`/sys/class/drm/${name}/device/vendor`]: `${vendor}\n`,
  [`/sys/class/drm/${name}/device/mem_info_vram_total`]: `${own}\n`,
  [`/sys/class/drm/${name}/device/mem_info_gtt_total`]: `${shared}\n`,
});

const REGISTRY = "NVIDIA GeForce RTX 3060, 12884901888\r\nIntel(R) UHD Graphics 770, 134217728\r\n, \r\n";

test.each<[string, MemorySources, ReturnType<typeof adapter>, number | undefined]>([
  [
    "NVIDIA on Linux, by its name",
    machine("linux", { programs: { "nvidia-smi": SMI } }),
    adapter("nvidia", "NVIDIA GeForce RTX 4070"),
    12_282 * 1024 ** 2,
  ],
  [
    "NVIDIA on Linux, under another name: the smaller card",
    machine("linux", { programs: { "nvidia-smi": SMI } }),
    adapter("nvidia", "NVIDIA something"),
    4 * GIB,
  ],
  ["NVIDIA without its program", machine("linux"), adapter("nvidia", "NVIDIA"), undefined],
  [
    "an AMD card on Linux, beside another maker's",
    machine("linux", {
      files: {
        ...sysfs("card0", "0x8086", 0, 0),
        ...sysfs("card1", "0x1002", 16 * GIB, 8 * GIB),
        "/sys/class/drm/card1-DP-1/x": "",
      },
    }),
    adapter("amd", "AMD Radeon RX 7800 XT (RADV NAVI32)"),
    16 * GIB,
  ],
  [
    "an AMD chip on Linux, which shares the machine's memory",
    machine("linux", { files: sysfs("card0", "0x1002", GIB / 2, 15 * GIB) }),
    adapter("amd", "AMD Radeon 780M"),
    15.5 * GIB,
  ],
  ["an Intel chip on Linux", machine("linux"), adapter("intel", "Intel UHD"), 16 * GIB],
  ["Apple", machine("darwin"), adapter("apple", "Apple M2"), Math.floor((32 * GIB * 2) / 3)],
  [
    "a card on Windows",
    machine("win32", { programs: { "powershell.exe": REGISTRY } }),
    adapter("nvidia", "NVIDIA GeForce RTX 3060"),
    12 * GIB,
  ],
  [
    "an Intel chip on Windows",
    machine("win32", { programs: { "powershell.exe": REGISTRY } }),
    adapter("intel", "Intel(R) UHD Graphics 770"),
    16 * GIB,
  ],
  ["a software adapter", machine("linux"), adapter("mesa", "llvmpipe", true), undefined],
  ["an unknown vendor", machine("linux"), adapter("arm", "Mali"), undefined],
])("the memory of %s", async (_what, sources, which, bytes) => {
  expect(await findGpuMemory(which, sources)).toBe(bytes);
});

test("missing programs and files are not errors", async () => {
  expect(await systemSources.run("daybreak-no-such-program", [])).toBeUndefined();
  expect(await systemSources.read("/daybreak/no/such/file")).toBeUndefined();
  expect(await systemSources.list("/daybreak/no/such/folder")).toEqual([]);
  expect(await systemSources.run(process.execPath, ["-e", "console.log(1 + 1)"])).toBe("2\n");
});
