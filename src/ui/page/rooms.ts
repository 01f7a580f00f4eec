import { signal as value } from "@preact/signals";
import { chosenDaemon } from "../daemons.ts";

/** The rooms of the page by their address behind the "#". */
const ROOMS = { "": "Chat", "#/models": "Models", "#/monitor": "Monitor" } as const;
type RoomAddress = keyof typeof ROOMS;

/** What they show is of a daemon alone. */
const NEED_DAEMON: ReadonlySet<string> = new Set(["#/monitor"]);

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
export const ROOM_LIST = (Object.entries(ROOMS) as [RoomAddress, string][]).filter(
  ([address]) => chosenDaemon() !== undefined || !NEED_DAEMON.has(address),
);

/** Where the page is; a link to the address of a room goes there. */
export const room = value<RoomAddress>(fromAddress());

addEventListener("hashchange", () => (room.value = fromAddress()));

function fromAddress(): RoomAddress {
  const [address] = ROOM_LIST.find(([each]) => each === location.hash) ?? [""];
  return address;
}
