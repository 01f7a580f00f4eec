import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { chosenDaemon } from "../daemons.ts";
import { later } from "./later.tsx";

const DaemonDialog = later(async () => (await import("./daemon-dialog.tsx")).DaemonDialog);

/** The button that says which daemon the page uses, and opens the list of them. */
export function DaemonMenu(): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <>
      <button id="daemons" type="button" aria-haspopup="dialog" onClick={() => (isOpen.value = true)}>
        <span class="unseen">Daemon: </span>
        {chosenDaemon()?.name ?? "This browser only"} <span aria-hidden="true">▾</span>
      </button>
      {isOpen.value && <DaemonDialog onClose={() => (isOpen.value = false)} />}
    </>
  );
}
