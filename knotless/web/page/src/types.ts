// What the server sends: see web/picture.py, web/frames.py and web/feed.py.

export interface Node {
  name: string;
  kind: "switch" | "host";
  x: number;
  y: number;
}

export interface Channel {
  name: string;
  from: string;
  to: string;
  link: string;
  rate_mbps: number;
}

export interface Picture {
  kind: "live" | "replay" | "verdict";
  title: string;
  actions: string[];
  /** Where a reader finds the token that actions need. */
  token_hint: string;
  number: number;
  fabric: string | null;
  nodes: Node[];
  channels: Channel[];
}

/** Channel, priority, load and paused share in thousandths, bytes queued, bytes in the buffer. */
export type Row = [number, number, number, number, number, number];

export interface Flow {
  from: string;
  to: string;
  bytes?: number;
  frames?: number;
}

export interface Knot {
  since_us: number;
  cycle: string[];
  members: string[];
  waiting: Record<string, Flow[]>;
}

export interface Frame {
  n: number;
  time: number;
  at_us: number;
  rows: Row[];
  /** Channel, frames dropped so far, frames dropped since the frame before. */
  drops: [number, number, number][];
  down: number[];
  knot: Knot | null;
}

export interface Timeline {
  first: number;
  times: number[];
  knots: number[];
}

export interface Verdict {
  text: string;
  cycle: string[];
  witnesses?: { source?: string; destination?: string; text?: string }[];
}

export interface ControllerState {
  reachable: boolean;
  why?: string;
  ready?: boolean;
  engine?: string;
  flow_control?: string;
  switches?: Record<string, { connected: boolean; installed: boolean; rules: number }>;
  links_down?: string[];
  routes?: { failed?: string[]; changing?: boolean; tier?: number | null };
  drained?: string[];
  check?: Verdict | null;
}

export interface EmulatorState {
  reachable: boolean;
  why?: string;
  stretch?: number | null;
  stretch_now?: number | null;
  valid?: boolean;
}

export interface State {
  fabric?: { running: boolean; why?: string; name?: string; missing?: string[] };
  controller?: ControllerState;
  emulator?: EmulatorState | null;
  traffic?: { pattern: string; rate_mbps: number | null; flows: number } | null;
  cut?: { link: string; carrier: boolean }[] | null;
  verdict?: Verdict;
  /** What knotless status tells, in its words and its order. */
  problems?: string[];
  notes?: string[];
  /** Why a deadlock stays, and what to do; null and empty without one. */
  reason?: string | null;
  advice?: { do: string; command: string }[];
}

export interface FabricEvent {
  time: number;
  kind: string;
  [field: string]: unknown;
}

export interface Step {
  action: string;
  rules_changed: number;
  stopped_pairs: number;
}

export interface StepProof {
  acyclic: boolean;
  lost: number;
  dropped_pairs?: number;
  dependencies: number;
}

export interface Change {
  number?: number;
  time?: number;
  engine?: string;
  failed?: string[];
  drained?: string[];
  repair?: string;
  tier: number;
  rules_changed: number;
  seconds?: number;
  dropped_pairs?: number;
  dropped_s?: number;
  steps?: Step[];
  certificate: { proven: boolean; flow_control: string; steps: StepProof[] } | null;
}
