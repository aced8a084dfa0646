// The picture: sigma.js draws the fabric with WebGL; places come from the server.

import { EdgeCurvedArrowProgram } from "@sigma/edge-curve";
import { MultiDirectedGraph } from "graphology";
import Sigma from "sigma";
import { EdgeRectangleProgram } from "sigma/rendering";

import { type Values } from "./channels";
import { type Style, onThemeChange, styleOf, theme } from "./colours";
import type { Picture, State } from "./types";

/** Above this number of channels both directions of a link are one straight line. */
const MOST_CURVED = 2000;
const MOST_LABELLED = 400;

/** Draws the name of a switch in it, and anything else beside it. */
function drawLabel(
  context: CanvasRenderingContext2D,
  data: { x: number; y: number; size: number; label: string | null; kind?: string },
): void {
  if (!data.label) return;
  const inside = data.kind === "switch" && data.size >= 8;
  const [name, ...rest] = data.label.split(" ");
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = inside ? theme().back : theme().text;
  context.textAlign = inside ? "center" : "left";
  context.fillText(inside ? name ?? "" : data.label, data.x + (inside ? 0 : data.size + 3), data.y + 4);
  if (!inside || rest.length === 0) return;
  context.fillStyle = theme().text;
  context.fillText(rest.join(" "), data.x, data.y + data.size + 12);
}

interface Item {
  x?: number;
  y?: number;
  size: number;
  color: string;
  label: string | null;
  kind?: string;
  curvature?: number;
  forceLabel?: boolean;
  zIndex?: number;
}

export class Drawing {
  private graph = new MultiDirectedGraph<Item, Item>();
  private renderer: Sigma<Item, Item> | null = null;
  private shown: string[] = [];
  private picture: Picture | null = null;
  private values: Values[] = [];
  private state: State = {};
  private selected = -1;
  private verdict = new Set<string>();

  /** `choose` receives the index of a channel that is clicked. */
  constructor(
    private readonly box: HTMLElement,
    private readonly choose: (channel: number) => void,
  ) {
    onThemeChange(() => this.restart());
  }

  /** Draws another fabric. */
  setPicture(picture: Picture): void {
    this.picture = picture;
    this.values = [];
    this.restart();
  }

  /** Shows the values of a frame. */
  setValues(values: Values[]): void {
    this.values = values;
    this.paintChannels();
  }

  /** Shows which switches are connected. */
  setState(state: State): void {
    this.state = state;
    const switches = state.controller?.reachable ? state.controller.switches : undefined;
    const changed: string[] = [];
    this.graph.forEachNode((name, item) => {
      if (item.kind !== "switch") return;
      const lost = switches !== undefined && switches[name]?.connected === false;
      const color = lost ? theme().lost : theme().switch;
      const label = lost ? `${name} (not connected)` : name;
      if (item.color === color && item.label === label) return;
      this.graph.mergeNodeAttributes(name, { color, label });
      changed.push(name);
    });
    if (changed.length > 0) this.refresh(changed, []);
  }

  /** Marks the channels of a verdict's cycle; none if empty. */
  setVerdict(channels: Set<string>): void {
    this.verdict = channels;
    this.paintChannels();
  }

  /** Makes one channel stand out; -1 for none. */
  select(channel: number): void {
    this.selected = channel;
    this.paintChannels();
  }

  private restart(): void {
    this.renderer?.kill();
    this.renderer = null;
    this.graph.clear();
    this.shown = [];
    const { picture } = this;
    if (picture === null || picture.nodes.length === 0) return;
    this.fill(picture);
    const many = picture.channels.length > MOST_LABELLED;
    try {
      this.renderer = new Sigma<Item, Item>(this.graph, this.box, {
        defaultEdgeType: picture.channels.length > MOST_CURVED ? "line" : "curved",
        edgeProgramClasses: { line: EdgeRectangleProgram, curved: EdgeCurvedArrowProgram },
        enableEdgeEvents: true,
        renderEdgeLabels: true,
        defaultDrawNodeLabel: drawLabel as never,
        edgeLabelColor: { color: theme().text },
        labelSize: 12,
        edgeLabelSize: 11,
        labelRenderedSizeThreshold: many ? 7 : 3,
        labelDensity: many ? 1 : 10,
        hideEdgesOnMove: false,
        allowInvalidContainer: true,
        minEdgeThickness: 1,
        stagePadding: 46,
        zIndex: !many,
      });
    } catch {
      this.box.replaceChildren("This browser has no WebGL: the table shows everything.");
      return;
    }
    this.renderer.on("clickEdge", ({ edge }) => this.choose(Number(edge)));
    this.renderer.on("clickStage", () => this.choose(-1));
    this.setState(this.state);
    this.paintChannels();
  }

  private fill(picture: Picture): void {
    const small = picture.nodes.length > 300;
    for (const { name, kind, x, y } of picture.nodes) {
      const isSwitch = kind === "switch";
      const size = isSwitch ? (small ? 3 : 14) : small ? 1.5 : 5;
      const color = isSwitch ? theme().switch : theme().host;
      this.graph.addNode(name, { x, y, kind, size, color, label: name, forceLabel: !small });
    }
    const parallel = new Map<string, number>();
    picture.channels.forEach((channel, i) => {
      const pair = `${channel.from} ${channel.to}`;
      const before = parallel.get(pair) ?? 0;
      parallel.set(pair, before + 1);
      this.graph.addDirectedEdgeWithKey(String(i), channel.from, channel.to, {
        size: 1.6, color: theme().idle, label: null, curvature: 0.12 * (before + 1), zIndex: 0,
      });
    });
  }

  private style(index: number): Style {
    const values = this.values[index];
    const name = this.picture?.channels[index]?.name ?? "";
    const style = values === undefined
      ? { color: theme().idle, size: 1.6, label: "" }
      : styleOf(values, this.verdict.has(name));
    if (values === undefined && this.verdict.has(name)) {
      return { color: theme().verdict, size: 5, label: "cycle" };
    }
    return index === this.selected ? { ...style, size: style.size + 4, label: name } : style;
  }

  private paintChannels(): void {
    const changed: string[] = [];
    this.picture?.channels.forEach((_, i) => {
      const { color, size, label } = this.style(i);
      const key = `${color} ${size.toFixed(1)} ${label}`;
      if (this.shown[i] === key || !this.graph.hasEdge(String(i))) return;
      this.shown[i] = key;
      this.graph.mergeEdgeAttributes(String(i), {
        color, size, label: label || null, forceLabel: label !== "", zIndex: Math.round(size),
      });
      changed.push(String(i));
    });
    if (changed.length > 0) this.refresh([], changed);
  }

  private refresh(nodes: string[], edges: string[]): void {
    this.renderer?.refresh({
      partialGraph: { nodes, edges }, skipIndexation: edges.length > MOST_LABELLED, schedule: true,
    });
  }
}
