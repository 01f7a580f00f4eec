import { z } from "zod";

/** What the system lets this process have, and each process that it starts (ulimit); absent: no limit is known. */
export interface UserLimits {
  /** Open files, sockets and pipes (ulimit -n). */
  readonly descriptors?: number;
  /** Bytes of address space, reserved memory included (ulimit -v). */
  readonly addressSpaceBytes?: number;
  /** Bytes of writable memory of its own (ulimit -d). */
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

/** Asks Node's report, which reads the limits on every system that has them; takes some milliseconds. */
export function userLimits(): UserLimits {
  // It has none of them, and a report takes a second there, in which nothing else happens.
  if (process.platform === "win32") return {};
  // Else the report looks up the names of all connections. Node's types do not know the option yet.
  Object.assign(process.report, { excludeNetwork: true });
  const limits = reportSchema.safeParse(process.report.getReport()).data?.userLimits;
  return {
    ...known("descriptors", limits?.open_files),
    ...known("addressSpaceBytes", limits?.virtual_memory_bytes),
    ...known("dataBytes", limits?.data_seg_size_bytes),
  };
}

function known(name: keyof UserLimits, limit: z.infer<typeof limitSchema>): UserLimits {
  return limit === undefined || limit.soft === "unlimited" ? {} : { [name]: limit.soft };
}
