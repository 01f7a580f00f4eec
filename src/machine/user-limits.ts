import { z } from "zod";

/** Limits of this process and each of its children (ulimit); absent: unknown or none. */
export interface UserLimits {
  /** Open files, sockets and pipes (ulimit -n). */
  readonly descriptors?: number;
  /** Bytes of address space, reserved memory included (ulimit -v). */
  readonly addressSpaceBytes?: number;
  /** Bytes of private writable memory (ulimit -d). */
  readonly dataBytes?: number;
}

const limitSchema = z.object({ soft: z.union([z.number(), z.literal("unlimited")]) }).optional();
const reportSchema = z.object({
  userLimits: z.object({
    open_files: limitSchema,
    virtual_memory_bytes: limitSchema,
    data_seg_size_bytes: limitSchema,
  }),
});

/** Reads the limits from Node's report; takes some milliseconds. */
export function userLimits(): UserLimits {
  // Windows has none of these limits, and a report would block for a second there.
  if (process.platform === "win32") return {};
  // Without this, the report resolves the host names of all connections. Node's types lack the option.
  Object.assign(process.report, { excludeNetwork: true });
  const limits = reportSchema.safeParse(process.report.getReport()).data?.userLimits;
  return {
    ...knownLimit("descriptors", limits?.open_files),
    ...knownLimit("addressSpaceBytes", limits?.virtual_memory_bytes),
    ...knownLimit("dataBytes", limits?.data_seg_size_bytes),
  };
}

function knownLimit(name: keyof UserLimits, limit: z.infer<typeof limitSchema>): UserLimits {
  return limit === undefined || limit.soft === "unlimited" ? {} : { [name]: limit.soft };
}
