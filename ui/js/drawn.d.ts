// What the browser makes of what it takes: columns that grow, and the declarations of charts (ui/live/charts.py).

declare namespace Live {
  /** The columns of an arm: latency, KV bytes and memory, with the seconds of tokens (`t`) and of samples (`st`). */
  interface Series {
    t: number[];
    lat: number[];
    kvs: number[];
    kvf: number[];
    kvl: number[];
    kvt: number[];
    kvi: number[];
    st: number[];
    sm: number[];
    text: string;
    /** Code points of the text. */
    chars: number;
  }
  type Axis = 'token' | 'second';
  type Span = [number, number];
  /** What the heads of both kinds of runs say of phases and verdict. */
  interface Phased {
    now_s: number;
    max_new_tokens: number;
    unit: string;
    quality?: QualityView | null;
    arms: Pick<ArmHead, 'name' | 'state' | 'phases'>[];
  }
  interface Judged {
    verdict: VerdictText;
    digest: LedgerDigest | null;
    arms: Pick<ArmHead, 'name' | 'state' | 'phases'>[];
  }
  /** A place of the run, on either axis. */
  interface Place {
    token?: number;
    second?: number;
  }
  interface ChartUnit {
    unit: string;
    scale: number;
  }
  interface ChartLine {
    column: string;
    at: 'token' | 'sample' | 'length';
    first: number;
    scale: number;
    kind: string;
    width: number;
    curve: '' | 'predicted' | 'floor' | 'ranks';
    label: string;
  }
  interface Chart {
    key: string;
    title: string;
    unit: 'ms' | 'bytes';
    lines: ChartLine[];
    from_zero: boolean;
    min_span: number;
    annotations: boolean;
    encoder: { title: string; note: string } | null;
  }
  /** What the charts show. */
  interface View {
    /** Null before the first pull. */
    head: Head | null;
    series: Series[];
    /** The columns that a replay has reached; null: all of `series`. */
    part?: Series[] | null;
    /** No more values will come. */
    ended?: boolean;
    /** Names in the legend that the user switched off. */
    hidden: Set<string>;
    /** What the horizontal axis counts. */
    axis: Axis;
    /** What is visible of that axis; null while it is not zoomed. */
    zoom?: Span | null;
    /** Of each chart, from chartUnit(). */
    units: ChartUnit[];
    /** Top of each chart's vertical axis where outliers are cut off, null where none are. */
    tops?: (number | null)[];
    /** Of charts whose values lie over them. */
    titles?: string[];
    /** Colours of the annotations, and of legend entries that belong to no arm. */
    ink?: string;
    neutral?: string;
  }
}

declare namespace Batch {
  interface Bar {
    kind: number;
    begin: number;
    end: number;
    /** Its last step. */
    last: number;
    tokens: number;
    padding: number;
  }
  /** What an arm did with a request. */
  interface Row {
    bars: Bar[];
    /** Seconds and reason. */
    waits: [number, string][];
    tokens: number;
    prompt: number;
    end: number | null;
    reason: string;
    text: string;
  }
  interface Steps {
    begin: number[];
    end: number[];
    prefill: number[];
    decode: number[];
    idle: number[];
    waiting: number[];
  }
  /** The columns of an arm, folded. */
  interface Folded {
    steps: Steps;
    /** By request. */
    rows: Map<number, Row>;
    /** Of pages, in order. `request`: -1: given back. */
    moves: { step: number[]; from: number[]; to: number[]; request: number[]; page: number[]; group: number[] };
    waits: number;
    ends: number;
  }
  /** What the instruments of an arm show. */
  interface View {
    batch: Folded;
    asked: Requested;
    pages: PageGroup[];
    paged: boolean;
    cacheBytes: number;
    slots: number;
    now: number;
    /** Seconds at the right end. */
    end: number;
    chosen: number;
    hovered?: number;
    arm: number;
    waits: { [reason: string]: string };
  }
  /** A canvas to draw on. */
  interface Field {
    pen: CanvasRenderingContext2D;
    width: number;
    height: number;
    /** Width between the margins. */
    inner: number;
  }
  interface Colours {
    arm: string;
    ink: string;
    subdued: string;
    line: string;
    band: string;
  }
}
