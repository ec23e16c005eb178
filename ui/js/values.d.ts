// What components take from Python. Written by python -m tools.js_types; a test compares.

declare namespace Arm {
  interface Verdicts {
    arm: string;
    key: string;
    offers: boolean;
    title: string;
    chips: Chip[];
    memory: string;
    parts: string;
    share: number;
    verdicts: VerdictLine[];
    gets: string[];
    link: Link | null;
  }
  interface Chip {
    name: string;
    axis: string;
    choice: string;
    summary: string;
    default: string;
    level: string;
  }
  interface VerdictLine {
    level: string;
    reason: string;
    source: string;
    fix: { [key: string]: string };
    fix_text: string;
  }
  interface Link {
    written: string;
    run: string;
    own: boolean;
  }
  interface Stale {
    run: string;
    text: string;
  }
}

declare namespace Chips {
  interface ChipLine {
    sentence: string;
    chips: SettingChip[];
  }
  interface SettingChip {
    title: string;
    value: string;
    default: string;
  }
}

declare namespace Claims {
  interface ClaimsDocument {
    kind: "claims";
    schema: 3;
    counts: { [key: string]: number };
    claims: ClaimView[];
  }
  interface ClaimView {
    name: string;
    title: string;
    family: string;
    family_title: string;
    document: string;
    place: string;
    said: string;
    about: "any" | "gpu";
    differs: string;
    claimed: string;
    measured: string;
    word: "confirmed" | "exceeded" | "not confirmed" | "not decided" | "not tested here" | "partly confirmed";
    remark: string;
    sentence: string;
    machines: OnMachine[];
    commands: { [key: string]: string[] };
    curves: CurveView[];
  }
  interface OnMachine {
    machine: string;
    device: "cpu" | "cuda";
    date: string;
    versions: string;
    word: "confirmed" | "exceeded" | "not confirmed" | "not decided" | "not tested here" | "partly confirmed";
    remark: string;
    sentence: string;
    figures: FigureView[];
    doubts: string[];
  }
  interface FigureView {
    title: string;
    unit: "%" | "GB" | "nats" | "s" | "tokens" | "x";
    claimed: string;
    claimed_low: number | null;
    claimed_high: number | null;
    measured: string;
    value: number | null;
    low: number | null;
    high: number | null;
    state: "exceeds" | "missing" | "outside" | "overlaps" | "shown" | "within";
    standing: string;
    command: string;
  }
  interface CurveView {
    title: string;
    command: string;
    drawn: Drawn;
  }
  interface Drawn {
    source: string;
    horizontal: string;
    places: string[];
    numbers: boolean;
    chart: LineChart;
  }
  interface LineChart {
    title: string;
    unit: string;
    lines: Line[];
  }
  interface Line {
    title: string;
    values: (number | null)[];
    low: (number | null)[];
    high: (number | null)[];
    texts: string[];
  }
}

declare namespace Fair {
  interface Fairness {
    state: "equal" | "fair" | "unasked";
    badge: string;
    sentence: string;
    same: string;
    fix: { [key: string]: { [key: string]: string } };
    fix_text: string;
  }
}

declare namespace Fit {
  interface FitView {
    label: string;
    heading: string;
    answer: AnswerView;
    remarks: string[];
    context: number;
    most: number;
    encoder: boolean;
    columns: string[];
    parts: string[];
    rows: RowView[];
    cards: CardLine[];
    not_here: string;
    run: string;
    measured: string;
    kinds: KindCurves;
    windows: WindowCurve[];
  }
  interface AnswerView {
    words: string;
    tried: number;
    room_bytes: number;
    arm: string | null;
    gpus: number | null;
    choices: { [key: string]: string } | null;
    needed_bytes: number | null;
    max_context: number | null;
    curves: Curve[];
  }
  interface Curve {
    title: string;
    contexts: number[];
    bytes: number[];
    most: number;
  }
  interface RowView {
    choices: { [key: string]: string };
    title: string;
    margin: "comfortable" | "does not fit" | "tight";
    cells: string[];
    parts: number[];
    peak: string;
    main: boolean;
    not_here: string;
  }
  interface CardLine {
    names: string[];
    memory_bytes: number;
    size: string;
    chosen: boolean;
  }
  interface KindCurves {
    contexts: number[];
    kinds: { [key: string]: number[] };
    said: string;
  }
  interface WindowCurve {
    title: string;
    contexts: number[];
    windowed: number[];
    unwindowed: number[];
    said: string;
  }
  interface Amounts {
    context: any;
    batch: any;
  }
}

declare namespace Live {
  interface Delta {
    run: string;
    status: "cancelled" | "done" | "failed" | "interrupted" | "queued" | "running";
    ended: boolean;
    version: number;
    queue: string;
    trouble: string;
    every_ms: number;
    head: Head | null;
    lanes: Columns[];
  }
  interface Head {
    title: string;
    note: string;
    created: number;
    now_s: number;
    message: string;
    quiet: boolean;
    unit: "forward" | "token";
    max_new_tokens: number;
    verdict: VerdictText;
    differences: { [key: string]: Difference };
    digest: LedgerDigest | null;
    card: Card | null;
    heading: string;
    bar: PhaseBar | null;
    memory_label: string;
    texts: string;
    arms: ArmHead[];
    quality: QualityView | null;
    crossing: Crossing | null;
    figures: { [key: string]: SlideFigure };
  }
  interface VerdictText {
    sentence: string;
    basis: string;
    gate: string;
    gate_run: string;
    unasked: string;
    pays: string;
  }
  interface Difference {
    text: string;
    better: string;
  }
  interface LedgerDigest {
    line: string;
    status: "failed" | "fallback" | "no_effect" | "not_applicable" | "off" | "partial" | "unchecked" | "verified";
    shown: string[];
    titles: { [key: string]: string };
  }
  interface Card {
    lead: string;
    figure: string;
    tail: string;
    ratio: number;
    low: number | null;
    high: number | null;
    pairs: number[];
    ends: string;
    names: { [key: string]: string };
    decided: boolean;
    recommendation: string;
    tone: "bad" | "caution" | "good" | "open";
    reason: string;
    confidence: string;
    tiles: CardTile[];
    next: Next | null;
    cost: string;
  }
  interface CardTile {
    title: string;
    a: string;
    b: string;
    unit: string;
    note: string;
  }
  interface Next {
    label: string;
    action: "code" | "run";
    arm: string;
  }
  interface PhaseBar {
    label: string;
    parts: Part[];
    spent_s: number;
    left_s: number | null;
    most_s: number | null;
    rule: string;
  }
  interface Part {
    name: "pairs" | "proof" | "quality" | "ready";
    text: string;
    state: "done" | "now" | "waiting";
    spent_s: number;
    expected_s: number | null;
  }
  interface ArmHead {
    name: string;
    label: string;
    state: string;
    phases: PhaseStep[];
    verdicts: Verdict[];
    tiles: Tile[];
    details: Tile[];
    ledger: LedgerRow[];
    notes: string[];
    spoilers: string[];
    code: string;
    predicted: KvCurve | null;
    prompt_tokens: number;
    floor: RooflineCurve | null;
    marks: AnnotationText[];
    pace: Pace;
    ranks: RankCurves | null;
    step: StepText | null;
    start: StepText | null;
  }
  interface PhaseStep {
    name: "compile" | "download" | "import" | "load" | "prove" | "quality" | "quantize" | "run" | "start" | "warmup";
    title: string;
    state: string;
    begin_s: number;
    seconds: number;
    fraction: number | null;
    note: string;
    wait: string;
    expected_s: number | null;
  }
  interface Verdict {
    level: "blocked" | "fallback" | "note" | "ok";
    axis: string;
    reason: string;
    fix: { [key: string]: string };
    source: string;
    becomes: string;
  }
  interface Tile {
    key: string;
    label: string;
    value: string;
    unit: string;
    note: string;
  }
  interface LedgerRow {
    axis: string;
    requested: string;
    planned: string;
    effective: string;
    proof: string;
    status: "failed" | "fallback" | "no_effect" | "not_applicable" | "off" | "partial" | "unchecked" | "verified";
    reason: string;
    reached: number | null;
    expected: number | null;
  }
  interface KvCurve {
    x: number[];
    window: number[];
    growing: number[];
    latent: number[];
    state: number[];
    index: number[];
  }
  interface RooflineCurve {
    x: number[];
    s: number[];
    exchanges: string;
  }
  interface AnnotationText {
    kind: "cache" | "compile" | "foreign" | "gc" | "graph_skip" | "recompile" | "throttle" | "window";
    token: number;
    text: string;
  }
  interface Pace {
    t: number[];
    n: number[];
  }
  interface RankCurves {
    x: (number | null)[];
    bytes: (number | null)[];
  }
  interface StepText {
    seconds: number;
    text: string;
    parts: PartText[];
    said: string;
    missing: string;
  }
  interface PartText {
    key: string;
    label: string;
    seconds: number | null;
    text: string;
    share: number;
    reads: string;
    reads_s: number | null;
  }
  interface QualityView {
    rows: QualityRow[];
    progress: string;
    compared: string;
  }
  interface QualityRow {
    title: string;
    positions: string;
    a: string;
    b: string;
    ratio: string;
    kl: string;
    largest: string;
    agreement: string;
    divergence: string;
  }
  interface Crossing {
    starts_s: number[];
    steps_s: number[];
    tokens: number;
    label: string;
  }
  interface SlideFigure {
    lead: string;
    figure: string;
    tail: string;
  }
  interface Columns {
    first: number;
    n: number;
    t: number[];
    lat: number[];
    kvs: number[];
    kvf: number[];
    kvl: number[];
    kvt: number[];
    kvi: number[];
    sfirst: number;
    sn: number;
    st: number[];
    sm: number[];
    cfirst: number;
    cn: number;
    text: string;
  }
  interface Term {
    titles: string[];
    meaning: string;
  }
}

declare namespace Batch {
  interface BatchDelta {
    run: string;
    status: "cancelled" | "done" | "failed" | "interrupted" | "queued" | "running";
    ended: boolean;
    version: number;
    queue: string;
    trouble: string;
    every_ms: number;
    head: BatchHead | null;
    lanes: BatchColumns[];
  }
  interface BatchHead {
    title: string;
    note: string;
    created: number;
    now_s: number;
    message: string;
    quiet: boolean;
    unit: "forward" | "token";
    max_new_tokens: number;
    verdict: Live.VerdictText;
    differences: { [key: string]: Live.Difference };
    digest: Live.LedgerDigest | null;
    card: Live.Card | null;
    heading: string;
    bar: Live.PhaseBar | null;
    traffic: string;
    slots: number;
    why: string;
    same: string;
    compared: number;
    differ: { [key: string]: number };
    waits: { [key: string]: string };
    asked: Requested | null;
    arms: BatchArmHead[];
  }
  interface Requested {
    arrival_s: number[];
    prompt_tokens: number[];
    max_new_tokens: number[];
  }
  interface BatchArmHead {
    name: string;
    label: string;
    state: string;
    phases: Live.PhaseStep[];
    verdicts: Live.Verdict[];
    tiles: Live.Tile[];
    details: Live.Tile[];
    ledger: Live.LedgerRow[];
    notes: string[];
    spoilers: string[];
    code: string;
    kind: string;
    pages: PageGroup[];
    cache_bytes: number;
    buckets: Bucket[];
  }
  interface PageGroup {
    attention: string;
    layers: number;
    page_tokens: number;
    page_bytes: number;
    pages: number;
  }
  interface Bucket {
    slots: number;
    batches: ([number, number])[];
    compiled: ([number, number])[];
    said: string;
  }
  interface BatchColumns {
    first: number;
    n: number;
    b: number[];
    e: number[];
    pad: number[];
    w: number[];
    pfirst: number;
    pe: number[];
    r: number[];
    k: number[];
    tok: number[];
    wfirst: number;
    wn: number;
    wt: number[];
    wr: number[];
    why: ("batch" | "margin" | "pages" | "reads" | "requests" | "tokens")[];
    mfirst: number;
    mn: number;
    ms: number[];
    mg: number[];
    mp: number[];
    mr: number[];
    efirst: number;
    en: number;
    er: number[];
    at: number[];
    ewhy: string[];
    et: string[];
  }
}

declare namespace Palette {
  interface Offers {
    model: string;
    entries: Entry[];
  }
  interface Entry {
    group: string;
    axis: string;
    title: string;
    summary: string;
    cost: string;
    state: "cannot run" | "falls back" | "runs";
    why: string;
    choices: { [key: string]: string };
    whole: boolean;
    name: string;
    axis_name: string;
    aliases: string[];
    words: string;
    page: string;
    argument: string;
  }
}

declare namespace Story {
  interface Shown {
    at: string;
    playing: string;
    no_runs: string;
    stories: ShownStory[];
  }
  interface ShownStory {
    name: string;
    title: string;
    number: string;
    headline: string;
    times: string;
    why: string;
    caption: string;
    curves: number[][];
    text: string[];
    claim: string;
    source: string;
    claims: ShownClaim[];
    found: string;
    played: ShownRecording[];
    batching: boolean;
    here: string;
    chart: string;
  }
  interface ShownClaim {
    name: string;
    title: string;
    word: string;
    remark: string;
    sentence: string;
  }
  interface ShownRecording {
    recording: string;
    recorded: string;
    shows: string;
  }
}

declare namespace Worth {
  interface WorthView {
    course: CourseView;
    headline: string;
    note: string;
    figures: string[];
    groups: Group[];
    pareto: Pareto | null;
  }
  interface CourseView {
    id: string;
    state: "done" | "failed" | "running" | "stopped";
    sentence: string;
    message: string;
    share: number;
    doing: string;
    left: string;
    again: boolean;
  }
  interface Group {
    title: string;
    what: string;
    rows: Row[];
  }
  interface Row {
    title: string;
    bars: (Bar | null)[];
    remarks: string[];
  }
  interface Bar {
    begin: number;
    end: number;
    low: number | null;
    high: number | null;
    text: string;
    interval: string;
    better: string;
  }
  interface Pareto {
    quality: string;
    points: ParetoPoint[];
  }
  interface ParetoPoint {
    label: string;
    latency_s: number;
    memory_bytes: number;
    quality: number | null;
    alike: string;
    front: boolean;
    text: string;
    mark: string;
  }
}

declare namespace Advise {
  interface AdviceView {
    course: Worth.CourseView;
    headline: string;
    counts: string;
    cards: AdviceCard[];
    pareto: Worth.Pareto | null;
    table: string[][];
    left: Reasons[];
  }
  interface AdviceCard {
    label: "memory" | "same format" | "transformers" | "wish";
    tag: string;
    title: string;
    figures: Figure[];
    gets: string[];
    script: string;
    serve: string;
    serve_note: string;
    certificate: string[];
    run: string;
  }
  interface Figure {
    value: string;
    what: string;
  }
  interface Reasons {
    title: string;
    lines: string[];
  }
}

declare namespace History {
  interface Runs {
    found: RunList;
    kept: boolean;
    team: boolean;
    imports: boolean;
    trouble: string;
    notes: string;
  }
  interface RunList {
    rows: Row[];
    total: number;
    kept: number;
    page: number;
    per_page: number;
  }
  interface Row {
    id: string;
    created: number;
    kind: string;
    model: string;
    label: string;
    work: string;
    machine: string;
    arms: ArmText[];
    origin: string;
    status: string;
    line: string | null;
    name: string;
    note: string;
    mine: boolean;
    shared: boolean;
    owner: string;
    trial: string;
    trials: number;
  }
  interface ArmText {
    name: string;
    text: string;
  }
  interface SideBySide {
    arms: PinnedArm[];
    rows: SideRow[];
    remarks: string[];
    missing: string[];
    pareto: Worth.Pareto | null;
    kind: string;
    schema: number;
  }
  interface PinnedArm {
    label: string;
    pin: string;
    run: string;
    arm: string;
    title: string;
    choices: string;
    created: number;
    status: string;
    unlike: string[];
    alike: boolean;
  }
  interface SideRow {
    group: "choices" | "conditions" | "figures" | "ledger" | "text";
    label: string;
    cells: Cell[];
    differs: boolean;
  }
  interface Cell {
    text: string;
    note: string;
    against: string;
  }
}

declare namespace Sweep {
  interface SweepView {
    course: Worth.CourseView;
    headline: string;
    note: string;
    arm: string;
    over: ([string, string])[];
    horizontal: string;
    places: string[];
    numbers: boolean;
    charts: Claims.LineChart[];
    across: string;
    down: string;
    heats: HeatMap[];
    pareto: Worth.Pareto | null;
    table: string[][];
  }
  interface HeatMap {
    title: string;
    rows: string[];
    columns: string[];
    values: ((number | null)[])[];
    texts: string[][];
  }
}
