import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { toError } from "../../errors/to-error.ts";
import { models, showProblem } from "../page-state.ts";
import { HubRepoEntry } from "./hub-repo.tsx";
import { LinkedText } from "./linked-text.tsx";
import { type HubRepo, listSuggestions, searchHub, type Suggestion } from "./models-api.ts";
import { goToDownloads, PullNote } from "./pull-list.tsx";
import { pulls, startPull } from "./pulls.ts";

/** As many as a person reads. */
const MOST_REPOS = 20;
/** Suggestions that are shown at first; the others are a click away. */
const FIRST_SUGGESTIONS = 6;
/** A repository's own name, as people copy it: with or without the hub's address or "hf:". */
const REPO = /^(?:https?:\/\/[^/]+\/|hf:)?([\w.-]+\/[\w.-]+?)(?:[:/].*)?$/;

/** Where a model is found and downloaded. */
export function GetModel(): JSX.Element {
  return (
    <section aria-labelledby="get-title">
      <h2 id="get-title" tabIndex={-1}>
        Get a model
      </h2>
      <Search />
      <h3>Good to begin with</h3>
      <Suggestions />
    </section>
  );
}

function Search(): JSX.Element {
  const query = useSignal("");
  const found = useSignal<readonly HubRepo[] | undefined>(undefined);
  const problem = useSignal("");
  const asking = useSignal<AbortController | undefined>(undefined);
  const search = async (): Promise<void> => {
    const words = query.value.trim();
    if (words === "") return;
    asking.value?.abort();
    const controller = new AbortController();
    asking.value = controller;
    problem.value = "";
    found.value = undefined;
    try {
      const [, repo] = REPO.exec(words) ?? [];
      found.value =
        repo === undefined
          ? await searchHub(words, MOST_REPOS, controller.signal)
          : [{ repo, gated: false, downloads: 0, likes: 0 }];
    } catch (error) {
      if (!controller.signal.aborted) problem.value = toError(error).message;
    } finally {
      if (asking.value === controller) asking.value = undefined;
    }
  };
  return (
    <>
      <form
        role="search"
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          void search();
        }}
      >
        <label>
          <span class="unseen">Search the hub</span>
          <input
            id="hub-query"
            type="search"
            placeholder="Search the hub: qwen3, or owner/repository"
            value={query}
            onInput={({ currentTarget }) => (query.value = currentTarget.value)}
          />
        </label>
        <button type="submit" class="main">
          Search
        </button>
      </form>
      <div id="hub-results" role="status">
        {asking.value && <p>Asking the hub …</p>}
        {problem.value !== "" && (
          <p class="wrong">
            <LinkedText text={problem.value} />
          </p>
        )}
        {found.value?.length === 0 && (
          <p>The hub has no GGUF models with that name. Fewer or other words may find more.</p>
        )}
      </div>
      {found.value && found.value.length > 0 && (
        <ul class="repos">
          {found.value.map((repo) => (
            <HubRepoEntry key={repo.repo} repo={repo} isOpen={found.value?.length === 1} />
          ))}
        </ul>
      )}
    </>
  );
}

/** The suggestions that the daemon has. */
function Suggestions(): JSX.Element {
  const list = useSignal<readonly Suggestion[]>([]);
  const showsAll = useSignal(false);
  useEffect(() => {
    listSuggestions().then((found) => (list.value = found), showProblem);
  }, []);
  return (
    <>
      <ul id="suggestions" class="cards">
        {list.value.slice(0, showsAll.value ? list.value.length : FIRST_SUGGESTIONS).map((each) => (
          <SuggestionCard key={each.name} suggestion={each} />
        ))}
      </ul>
      {!showsAll.value && list.value.length > FIRST_SUGGESTIONS && (
        <p class="buttons">
          <button type="button" onClick={() => (showsAll.value = true)}>
            Show all {list.value.length}
          </button>
        </p>
      )}
    </>
  );
}

function SuggestionCard({ suggestion }: { readonly suggestion: Suggestion }): JSX.Element {
  const { name, description, size_hint: size, tags, from } = suggestion;
  const isThere = models.value.some(
    (model) => model.progress === undefined && (model.alias === name || model.from === from),
  );
  const isComing = pulls.value.some((pull) => pull.name === name && pull.state !== "done");
  return (
    <li class="card" data-suggestion={name}>
      <h3>{name}</h3>
      <p>{description}</p>
      <p class="facts">{size}</p>
      <ul class="chips" aria-label={`Good for`}>
        {tags.map((tag) => (
          <li key={tag}>{tag}</li>
        ))}
      </ul>
      <PullNote name={name} />
      <p class="buttons">
        <button
          type="button"
          disabled={isThere}
          onClick={() => (isComing ? goToDownloads() : void startPull(name))}
        >
          {isThere ? "On disk" : isComing ? "See downloads" : "Download"}
        </button>
      </p>
    </li>
  );
}
