// The picture: sigma.js draws the fabric with WebGL; places come from the server.

import { EdgeCurvedArrowProgram } from "@sigma/edge-curve";
import { MultiDirectedGraph } from "graphology";
import Sigma from "sigma";
import { EdgeLineProgram, EdgeRectangleProgram, NodeCircleProgram } from "sigma/rendering";

import { type Values } from "./channels";
import { type Style, onThemeChange, styleOf, theme } from "./colours";
import { Pixels } from "./pixels";
import { UndrawnNodeProgram, isSoftware } from "./software";
import type { Picture, State } from "./types";

/**
 * Above this number of channels both directions of a link are one thin line, in the colour of the
 * one that stands out more. Where WebGL is software, the page draws these lines itself.
 */
const MOST_CURVED = 2000;
const MOST_BOLD = 500;
const MOST_LABELLED = 400;
/** In a narrower picture the nodes of a large fabric are smaller, in pixels. */
const FULL_SIZE_WIDTH = 600;

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
  type?: string;
  curvature?: number;
  forceLabel?: boolean;
  zIndex?: number;
}

export class Drawing {
  private graph = new MultiDirectedGraph<Item, Item>();
  private renderer: Sigma<Item, Item> | null = null;
  /** What draws instead of WebGL, below the layers of sigma.js; null if WebGL draws. */
  private pixels: Pixels | null = null;
  /** x and y of each node on the page, as sigma.js last placed them. */
  private places = new Float32Array(0);
  /** The first and last node of each edge that WebGL does not draw. */
  private ends = new Map<number, { from: number; to: number }>();
  /** The edge of each channel. */
  private edges: number[] = [];
  /** By edge. */
  private shown: (Style | undefined)[] = [];
  /** The edges that are drawn again as thick lines, with their colours. */
  private bold = "";
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

  /** Draws another fabric; null: another view draws. */
  setPicture(picture: Picture | null): void {
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
    if (changed.length === 0) return;
    this.refresh(changed, []);
    this.paintPixels();
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
    this.pixels?.remove();
    this.pixels = null;
    this.ends.clear();
    this.graph.clear();
    this.shown = [];
    this.bold = "";
    const { picture } = this;
    if (picture === null || picture.nodes.length === 0) return;
    if (this.thin && isSoftware()) this.pixels = new Pixels(this.box);
    this.box.classList.toggle("has-pixels", this.pixels !== null);
    this.fill(picture);
    const many = picture.channels.length > MOST_LABELLED;
    const thin = this.thin;
    try {
      this.renderer = new Sigma<Item, Item>(this.graph, this.box, {
        defaultEdgeType: thin ? "thin" : "curved",
        nodeProgramClasses: {
          circle: this.pixels === null ? NodeCircleProgram : UndrawnNodeProgram,
        },
        edgeProgramClasses: {
          thin: EdgeLineProgram, bold: EdgeRectangleProgram, curved: EdgeCurvedArrowProgram,
        },
        // Not the graph's attributes: each change of those would be drawn by itself.
        edgeReducer: (edge, item) => {
          const style = this.shown[Number(edge)];
          if (style === undefined) return item;
          const { color, size, label } = style;
          return { ...item, color, size, label, forceLabel: label !== "", zIndex: Math.round(size) };
        },
        enableEdgeEvents: !many,
        renderEdgeLabels: !many,
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
    this.renderer.on("afterRender", () => this.place());
    this.setState(this.state);
    this.paintChannels();
    this.place();
  }

  private get thin(): boolean {
    return (this.picture?.channels.length ?? 0) > MOST_CURVED;
  }

  private fill(picture: Picture): void {
    const small = picture.nodes.length > 300;
    for (const { name, kind, x, y } of picture.nodes) {
      const isSwitch = kind === "switch";
      const size = isSwitch ? (small ? 3 : 14) : small ? 1.5 : 5;
      const color = isSwitch ? theme().switch : theme().host;
      this.graph.addNode(name, { x, y, kind, size, color, label: name, forceLabel: !small });
    }
    const nodes = new Map(picture.nodes.map(({ name }, i) => [name, i]));
    const parallel = new Map<string, number>();
    const links = new Map<string, number>();
    this.edges = picture.channels.map((_, i) => i);
    picture.channels.forEach((channel, i) => {
      const first = links.get(channel.link);
      if (this.thin && first !== undefined) {
        this.edges[i] = first;
        return;
      }
      links.set(channel.link, i);
      if (this.pixels !== null) {
        this.ends.set(i, { from: nodes.get(channel.from) ?? 0, to: nodes.get(channel.to) ?? 0 });
        return;
      }
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
      return { color: theme().verdict, size: 5, label: "cycle", bold: true };
    }
    if (index !== this.selected) return style;
    return { ...style, size: style.size + 4, label: name, bold: true };
  }

  private paintChannels(): void {
    const styles: (Style | undefined)[] = [];
    this.edges.forEach((edge, i) => {
      const [style, other] = [this.style(i), styles[edge]];
      if (other === undefined || other.size < style.size) styles[edge] = style;
    });
    const changed: string[] = [];
    styles.forEach((now, edge) => {
      const before = this.shown[edge];
      if (now === undefined || (before !== undefined && before.color === now.color &&
        before.label === now.label && Math.abs(before.size - now.size) < 0.1)) return;
      this.shown[edge] = now;
      changed.push(String(edge));
    });
    if (this.pixels !== null) {
      if (changed.length > 0) this.paintPixels();
      return;
    }
    if (changed.length > 0) this.refresh([], changed);
    if (this.thin) this.paintBold(styles);
  }

  /** Draws without WebGL after sigma.js has drawn: the view may have moved. */
  private place(): void {
    const { pixels, renderer, picture } = this;
    if (pixels === null || renderer === null || picture === null) return;
    this.places = new Float32Array(picture.nodes.flatMap(({ x, y }) => {
      const at = renderer.graphToViewport({ x, y });
      return [at.x, at.y];
    }));
    // A layer without content would have to be blended into every frame all the same.
    renderer.getCanvases()["labels"]?.toggleAttribute(
      "hidden", renderer.getNodeDisplayedLabels().size === 0,
    );
    this.paintPixels();
  }

  /** Draws lines and nodes without WebGL: what must not be overlooked last. */
  private paintPixels(): void {
    const { pixels, renderer } = this;
    if (pixels === null || renderer === null) return;
    const lines = this.shown.flatMap((style, edge) => {
      const ends = this.ends.get(edge);
      if (style === undefined || ends === undefined) return [];
      const { color, size, bold } = style;
      return [{ ...ends, color, size, width: bold ? 0.6 * size : 1 }];
    });
    lines.sort((a, b) => a.size - b.size);
    const shrunk = Math.min(1, this.box.clientWidth / FULL_SIZE_WIDTH);
    const discs = this.graph.mapNodes((_, { color, size }) => ({
      color, radius: renderer.scaleSize(shrunk * size),
    }));
    pixels.draw(this.places, lines, discs);
  }

  /** Draws what must not be overlooked over the thin lines of a large picture. */
  private paintBold(styles: (Style | undefined)[]): void {
    const wanted = styles.flatMap((style, edge) => (style?.bold ? [{ edge, style }] : []))
      .slice(0, MOST_BOLD);
    const key = wanted.map(({ edge, style }) => `${edge}${style.color}`).join();
    if (key === this.bold) return;
    this.bold = key;
    this.graph.filterEdges((name) => name.startsWith("bold"))
      .forEach((name) => this.graph.dropEdge(name));
    for (const { edge, style } of wanted) {
      const [from, to] = this.graph.extremities(String(edge));
      const item = { type: "bold", size: 0.6 * style.size, color: style.color, label: null };
      this.graph.addDirectedEdgeWithKey(`bold${edge}`, from, to, item);
    }
  }

  private refresh(nodes: string[], edges: string[]): void {
    this.renderer?.refresh({
      partialGraph: { nodes, edges }, skipIndexation: edges.length > MOST_LABELLED, schedule: true,
    });
  }
}
