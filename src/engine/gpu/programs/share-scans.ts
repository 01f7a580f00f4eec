import {
  type BufferEntry,
  type Dispatch,
  type FusingDevice,
  isSame,
  type KnownDispatch,
  overlap,
} from "./fusible.ts";

/** GPUBufferUsage.STORAGE */
const STATES_USAGE = 0x80;

/** A dispatch of a list, with its program and buffers. */
export type ScannedDispatch = Omit<KnownDispatch, "device"> & {
  readonly device: Pick<FusingDevice, "createBuffer" | "createBindGroup">;
};

/** Scan of an attention mask: finds the blocks that attention can skip. */
interface Scan {
  readonly dispatch: Dispatch;
  readonly mask: BufferEntry;
  readonly states: BufferEntry;
  readonly params: BufferEntry;
}

interface StatesBuffer {
  readonly buffer: object;
  readonly size: number;
}

interface SharedScan {
  readonly scan: Scan;
  readonly buffer: object;
}

/**
 * Scans a mask once for all layers. llama.cpp scans it before the attention of each layer, and puts the result into memory
 * that other steps reuse; here the result has a buffer of its own, which is valid until a program writes the mask.
 */
export function createScanSharing(
  describeDispatch: (dispatch: Dispatch) => ScannedDispatch | undefined,
): (list: readonly Dispatch[]) => Dispatch[] {
  const buffers = new WeakMap<object, StatesBuffer[]>();
  const groups = new WeakMap<object, { readonly buffer: object; readonly group: object }>();

  /**
   * Returns the buffer for a scan, by its position in the list. Lists can share it, because each writes it before reading.
   * The sizes grow with the text, so only the largest buffer is cached.
   */
  const bufferOf = (device: ScannedDispatch["device"], number: number, size: number): object => {
    let own = buffers.get(device);
    if (!own) buffers.set(device, (own = []));
    const known = own[number];
    if (known && known.size >= size) return known.buffer;
    const buffer = device.createBuffer({ size, usage: STATES_USAGE });
    own[number] = { buffer, size };
    return buffer;
  };
  const withBuffer = (dispatch: Dispatch, states: BufferEntry, size: number, buffer: object): Dispatch => {
    const made = groups.get(dispatch.group);
    if (made?.buffer === buffer) return { ...dispatch, group: made.group };
    const { device, entries } = describeDispatch(dispatch)!;
    const changed = entries.map((entry) =>
      isSame(entry, states) ? { binding: entry.binding, resource: { buffer, offset: 0, size } } : entry,
    );
    const layout = dispatch.pipeline.getBindGroupLayout(0);
    const group = device.createBindGroup({ layout, entries: changed });
    groups.set(dispatch.group, { buffer, group });
    return { ...dispatch, group };
  };

  /** True if only this dispatch reads the result of a scan. */
  const isOnlyReader = (next: Dispatch, { states }: Scan, others: readonly Dispatch[]): boolean => {
    if (!onlyReads(describeDispatch(next), states)) return false;
    const user = others.find(
      (each) => describeDispatch(each)?.entries.some((entry) => overlap(entry, states)) ?? true,
    );
    return user === undefined || onlyWrites(describeDispatch(user), states);
  };

  return (list) => {
    const result: Dispatch[] = [];
    let shared: SharedScan[] = [];
    let scans = 0;
    for (let at = 0; at < list.length; at++) {
      const dispatch = list[at]!;
      const next = list[at + 1];
      const scan = readScan(dispatch, describeDispatch(dispatch));
      const size = scan?.states.resource.size;
      if (!scan || !next || size === undefined || !isOnlyReader(next, scan, list.slice(at + 2))) {
        shared = shared.filter((each) => !mayWrite(describeDispatch(dispatch), each.scan.mask));
        result.push(dispatch);
        continue;
      }
      let same = shared.find((each) => isSameScan(each.scan, scan));
      if (!same) {
        same = { scan, buffer: bufferOf(describeDispatch(dispatch)!.device, scans++, size) };
        shared.push(same);
        result.push(withBuffer(dispatch, scan.states, size, same.buffer));
      }
      result.push(withBuffer(next, scan.states, size, same.buffer));
      shared = shared.filter((each) => !mayWrite(describeDispatch(next), each.scan.mask));
      at++;
    }
    return result;
  };
}

function readScan(dispatch: Dispatch, known: ScannedDispatch | undefined): Scan | undefined {
  if (!known?.program.names.includes("wg_any")) return undefined;
  const { bindings } = known.program;
  const entryOf = (name: string): BufferEntry | undefined => {
    const binding = bindings.find((each) => each.name === name)?.binding;
    return known.entries.find((entry) => entry.binding === binding);
  };
  const [mask, states, params] = [entryOf("mask"), entryOf("blk"), entryOf("params")];
  return mask && states && params && known.entries.length === 3
    ? { dispatch, mask, states, params }
    : undefined;
}

function isSameScan(a: Scan, b: Scan): boolean {
  const grid = ({ dispatch: { x, y, z = 1 } }: Scan): string => `${x} ${y} ${z}`;
  return (
    a.dispatch.pipeline === b.dispatch.pipeline &&
    grid(a) === grid(b) &&
    isSame(a.mask, b.mask) &&
    isSame(a.params, b.params) &&
    a.states.resource.size === b.states.resource.size
  );
}

function onlyReads(known: ScannedDispatch | undefined, states: BufferEntry): boolean {
  return (
    known !== undefined &&
    known.entries.some((entry) => isSame(entry, states)) &&
    known.entries.every(
      (entry) => !overlap(entry, states) || (isSame(entry, states) && !known.writes.includes(entry.binding)),
    )
  );
}

function onlyWrites(known: ScannedDispatch | undefined, states: BufferEntry): boolean {
  return (
    known !== undefined &&
    known.entries.every((entry) => !overlap(entry, states) || known.writes.includes(entry.binding))
  );
}

function mayWrite(known: ScannedDispatch | undefined, mask: BufferEntry): boolean {
  return (
    !known || known.entries.some((entry) => known.writes.includes(entry.binding) && overlap(entry, mask))
  );
}
