import { KIB, type MessageKind, type MessageKinds } from "../channel/message-kinds.ts";
import type { ProbeMessage } from "./gpu-report.ts";

/** The names and descriptions of one adapter, or the names of all that a driver lists. */
const DESCRIPTIONS: MessageKind = {
  limits: { json: 256 * KIB, depth: 5, values: 1024, attachments: 0, binary: 0 },
};

/** What a probe process says. A driver may have taken it over, so it has little room. */
export const PROBE_MESSAGE_KINDS: MessageKinds<ProbeMessage> = {
  failed: DESCRIPTIONS,
  listed: DESCRIPTIONS,
  opened: DESCRIPTIONS,
  unopened: DESCRIPTIONS,
  done: DESCRIPTIONS,
};
