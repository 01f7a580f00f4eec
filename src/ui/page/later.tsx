import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { showProblem } from "../page-state.ts";

/** Shows a part of the page whose script is loaded when it is first shown. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Later(props: Props): JSX.Element {
    const [Part, setPart] = useState(() => loaded);
    useEffect(() => {
      if (loaded) return;
      const show = async (): Promise<void> => {
        loaded = await load();
        setPart(() => loaded);
      };
      show().catch(showProblem);
    }, []);
    return Part ? <Part {...props} /> : <p class="hint">Loading …</p>;
  };
}
