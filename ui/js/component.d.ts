// What Gradio gives to a component's script (`gr.HTML(js_on_load=...)`), and a report as well (ui/report/page.py).

/** The component's element. */
declare const element: HTMLElement & { [instrument: string]: any };
/** Its value, which a script may set; other properties of `gr.HTML` are not used. */
declare const props: { value: string };
/** What Python tells a component once: `bundle(name, **settings)`. */
declare const settings: { [name: string]: any };
/** Its `server_functions`: each answers with the text of a JSON document. */
declare const server: { [name: string]: (asked: object) => Promise<string> };
/** Fires an event of the component, with data. */
declare function trigger(event: string, data?: object): void;
/** Calls when an event of Python has changed a property. */
declare function watch(property: 'value', changed: () => void): void;

// What a report holds besides (ui/report/page.py).
declare const REPORT: { value: string; reply: string; settings: object };
declare function panel(
  element: Element, settings: object, props: { value: string }, server: { pull: () => Promise<string> },
  trigger: () => void, watch: () => void,
): void;

/** plotly.js, from `settings.plotly`. */
declare const Plotly: any;

// What components share in a page.
interface Window {
  Plotly?: any;
  tokendynoPlotly?: Promise<void>;
  tokendynoAddress?: any;
  /** The story that is shown, for its slide, and its neighbours. */
  tokendynoStory?: {
    title: string; claim: string; number: string; headline: string; chart: string; place: number; count: number;
    before?: { name: string; title: string }; after?: { name: string; title: string }; open(name: string): void;
  } | null;
  /** Pages whose controls have changed since they were checked (ui/components/events.py). */
  tokendynoChanged?: Set<string>;
  tokendynoFit?: { context: number; most: number; label: string; encoder: boolean };
  /** Of benches: told of what came and what is shown. */
  tokendynoProbe?: { arrived(tokens: number[]): void; painted(ms: number): void; shows(tokens: number[]): void };
  gradio_config?: { components: { props: { [name: string]: any } }[] };
}

interface Element {
  checkVisibility(options?: object): boolean;
}

// A selector by class or id finds elements of HTML.
interface ParentNode {
  querySelector<K extends keyof HTMLElementTagNameMap>(selectors: K): HTMLElementTagNameMap[K];
  querySelector<E extends HTMLElement = HTMLElement>(selectors: string): E;
  querySelectorAll<K extends keyof HTMLElementTagNameMap>(selectors: K): NodeListOf<HTMLElementTagNameMap[K]>;
  querySelectorAll<E extends HTMLElement = HTMLElement>(selectors: string): NodeListOf<E>;
}
