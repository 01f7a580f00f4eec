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

/** What has to be known of a program of a list. */
export type ScannedDispatch = Omit<KnownDispatch, "device"> & {
  readonly device: Pick<FusingDevice, "createBuffer" | "createBindGroup">;
};

/** A look at the mask: which of its parts attention can pass over. */
interface Scan {
  readonly dispatch: Dispatch;
  readonly mask: BufferEntry;
  readonly states: BufferEntry;
  readonly params: BufferEntry;
}

/** What scans find. */
interface StatesBuffer {
  readonly buffer: object;
  readonly size: number;
}

interface SharedScan {
  readonly scan: Scan;
  readonly buffer: object;
}

/**
 * Looks at a mask once for all layers. llama.cpp does it before the attention of each, and puts what it finds into memory that
 * other steps use in between; here it has a buffer of its own, for as long as nothing writes the mask.
 */
export function createScanSharing(
  know: (dispatch: Dispatch) => ScannedDispatch | undefined,
): (list: readonly Dispatch[]) => Dispatch[] {
  const buffers = new WeakMap<object, StatesBuffer[]>();
  const groups = new WeakMap<object, { readonly buffer: object; readonly group: object }>();

  /**
   * For one of a list's scans: each list has written its own before it reads them. A text that grows has larger ones all the time,
   * so only the largest is kept.
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
    const { device, entries } = know(dispatch)!;
    const changed = entries.map((entry) =>
      isSame(entry, states) ? { binding: entry.binding, resource: { buffer, offset: 0, size } } : entry,
    );
    const layout = dispatch.pipeline.getBindGroupLayout(0);
    const group = device.createBindGroup({ layout, entries: changed });
    groups.set(dispatch.group, { buffer, group });
    return { ...dispatch, group };
  };

  /** A program is the only one that looks at what a scan has found. */
  const isReadBy = (next: Dispatch, { states }: Scan, others: readonly Dispatch[]): boolean => {
    if (!onlyReads(know(next), states)) return false;
    const user = others.find((each) => know(each)?.entries.some((entry) => overlap(entry, states)) ?? true);
    return user === undefined || onlyWrites(know(user), states);
  };

  return (list) => {
    const result: Dispatch[] = [];
    let shared: SharedScan[] = [];
    let scans = 0;
    for (let at = 0; at < list.length; at++) {
      const dispatch = list[at]!;
      const next = list[at + 1];
      const scan = readScan(dispatch, know(dispatch));
      const size = scan?.states.resource.size;
      if (!scan || !next || size === undefined || !isReadBy(next, scan, list.slice(at + 2))) {
        shared = shared.filter((each) => !mayWrite(know(dispatch), each.scan.mask));
        result.push(dispatch);
        continue;
      }
      let same = shared.find((each) => isSameScan(each.scan, scan));
      if (!same) {
        same = { scan, buffer: bufferOf(know(dispatch)!.device, scans++, size) };
        shared.push(same);
        result.push(withBuffer(dispatch, scan.states, size, same.buffer));
      }
      result.push(withBuffer(next, scan.states, size, same.buffer));
      shared = shared.filter((each) => !mayWrite(know(next), each.scan.mask));
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
