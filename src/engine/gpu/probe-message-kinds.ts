import { KIB, type MessageKind, type MessageKinds } from "../channel/message-kinds.ts";
import type { ProbeMessage } from "./gpu-report.ts";

/** For names and descriptions of one adapter, or the names of all adapters. */
const DESCRIPTIONS: MessageKind = {
  limits: { json: 256 * KIB, depth: 5, values: 1024, attachments: 0, binary: 0 },
};

/** Messages from a probe process. A driver may have compromised it, so the limits are tight. */
export const PROBE_MESSAGE_KINDS: MessageKinds<ProbeMessage> = {
  failed: DESCRIPTIONS,
  listed: DESCRIPTIONS,
  opened: DESCRIPTIONS,
  unopened: DESCRIPTIONS,
  done: DESCRIPTIONS,
};
