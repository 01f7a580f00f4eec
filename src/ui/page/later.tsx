import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { showProblem } from "../page-state.ts";

/** Shows a part of the page whose script is loaded when it is first shown. */
export function later(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined;
  return function Later(): JSX.Element {
    const [Part, setPart] = useState(() => loaded);
    useEffect(() => {
      if (loaded) return;
      const show = async (): Promise<void> => {
        loaded = await load();
        setPart(() => loaded);
      };
      show().catch(showProblem);
    }, []);
    return Part ? <Part /> : <p class="hint">Loading …</p>;
  };
}
