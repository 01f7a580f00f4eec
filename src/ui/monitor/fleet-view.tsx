import type { JSX } from "preact";
import { type FleetMachine, type FleetModel, factsOf, modelInWords } from "./fleet-facts.ts";
import { count } from "./format.ts";
import { fleet } from "./monitor-state.ts";

/** The machines that work together as one; nothing where the daemon is not part of a fleet. */
export function FleetView(): JSX.Element | null {
  const now = fleet.value;
  if (!now?.joined) return null;
  return (
    <section aria-labelledby="fleet-title">
      <h2 id="fleet-title">Fleet</h2>
      {!now.connected && (
        <p class="failed">The NATS server is not reachable: this machine is working alone until it is.</p>
      )}
      <ul id="fleet">
        {now.machines.map((machine) => (
          <Member key={machine.id} {...machine} />
        ))}
      </ul>
    </section>
  );
}

function Member(machine: FleetMachine): JSX.Element {
  const { name, self, state, models } = machine;
  const stored = models.filter(({ loaded }) => !loaded);
  return (
    <li class={state}>
      <h3>
        {name} <small>{self ? `this machine, ${state}` : state}</small>
      </h3>
      <dl>
        {factsOf(machine).map(([fact, words]) => (
          <div key={fact}>
            <dt>{fact}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <Models models={models.filter(({ loaded }) => loaded)} />
      {stored.length > 0 && (
        <details>
          <summary>On disk only: {count(stored.length)}</summary>
          <Models models={stored} />
        </details>
      )}
    </li>
  );
}

function Models({ models }: { readonly models: readonly FleetModel[] }): JSX.Element {
  if (models.length === 0) return <p class="models">No model is in memory.</p>;
  return (
    <ul class="models">
      {models.map((model) => (
        <li key={model.alias}>
          <strong>{model.alias}</strong> {modelInWords(model)}
        </li>
      ))}
    </ul>
  );
}
