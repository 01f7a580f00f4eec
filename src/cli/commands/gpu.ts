import { Command } from "commander";
import type { ReportedAdapter } from "../../engine/gpu/gpu-report.ts";
import { gpuJson } from "../../api/wire/machines.ts";
import { loadConfigOrFail } from "../options/common-options.ts";
import { type CliIo, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { configFlagOptions, configFlags } from "../options/config-flag-options.ts";
import { formatBytes } from "../../json/quantities.ts";
import { formatFields, printable } from "../terminal/format.ts";

type GpuOptions = Readonly<Record<string, unknown>> & { readonly json?: boolean; readonly config?: string };

/** Configuration options for the choice of the GPU, as flags to try other values. */
const GPU_OPTIONS = ["gpu.mode", "gpu.adapter", "sandbox"];

/** daybreak gpu: runs without a daemon, so that it works when the daemon cannot start. */
export function gpuCommand(io: CliIo): Command {
  const command = new Command("gpu")
    .description("show the GPUs of this machine, which one models use, and why others cannot be used")
    .option("--json", "print what was found as JSON")
    .option("--config <file>", "configuration file of the local daemon (also SERVICE_CONFIG)");
  for (const option of configFlagOptions(GPU_OPTIONS)) command.addOption(option);
  return command.action(async (options: GpuOptions) => {
    const { gpu, sandbox } = loadConfigOrFail({
      env: io.env,
      file: options.config,
      flags: configFlags(options),
    }).config;
    // Loaded lazily, because other commands do not need it.
    const { GpuFinder } = await import("../../engine/gpu/gpu-finder.ts");
    const finder = new GpuFinder({ mode: gpu.mode, adapter: gpu.adapter, sandbox });
    await finder.ready;
    if (options.json) return await writeJson(io.stdout, gpuJson(finder));
    const { problem } = finder;
    await writeLine(
      io.stdout,
      finder.adapter
        ? `Models use ${printable(finder.adapter.name)}.`
        : `Models run on the CPU. ${printable(problem ?? "")}`,
    );
    for (const each of finder.adapters) {
      await writeLine(io.stdout, "");
      await writeLines(io.stdout, formatFields(describe(each)).map(printable));
    }
    return undefined;
  });
}

function describe(adapter: ReportedAdapter): (readonly [string, string])[] {
  const head = [
    ["Adapter", adapter.name],
    ["Backend", adapter.backend],
  ] as const;
  const problem = adapter.problem === undefined ? [] : ([["Unusable", adapter.problem]] as const);
  if (!("features" in adapter)) return [...head, ...problem];
  const { features, limits, memory } = adapter;
  return [
    ...head,
    ["Driver", adapter.description],
    ["Vendor", `${adapter.vendor} ${adapter.architecture}`.trim()],
    ["Kind", adapter.software ? "software (computes on the CPU)" : "hardware"],
    ["Memory", memory === undefined ? "unknown" : formatBytes(memory)],
    ["16-bit floats", yesOrNo(features.shaderF16)],
    ["Subgroups", yesOrNo(features.subgroups)],
    ["Subgroup matrices", yesOrNo(features.subgroupMatrices)],
    ["Timestamp queries", yesOrNo(features.timestampQueries)],
    ["Largest buffer", formatBytes(limits.maxBufferSize)],
    ["Largest binding", formatBytes(limits.maxStorageBufferBindingSize)],
    ["Workgroup memory", formatBytes(limits.maxComputeWorkgroupStorageSize)],
    ...problem,
  ];
}

function yesOrNo(present: boolean): string {
  return present ? "yes" : "no";
}
