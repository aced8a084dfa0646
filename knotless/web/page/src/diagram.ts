// The picture of a small fabric, as SVG: every channel with the buffer at its end. Text is text,
// colours are those of the style sheet, and no WebGL is needed.

import { type Values, bufferBytes, channelOf, condition } from "./channels";
import { bytes, setText } from "./dom";
import type { Channel, Knot, Picture, State } from "./types";

const SVG = "http://www.w3.org/2000/svg";
/** A buffer is drawn full at this many bytes, or at the most that one has held in the frames shown. */
const LEAST_FULL_BYTES = 8000;
const MARGIN = 34;
/** The most pixels for a distance of 1 in the places of nodes; neighbours are about 1.5 apart. */
const WIDEST_STEP = 190;

interface Point {
  x: number;
  y: number;
}

/** A channel on the page: a curve from `start` to `end`, where its buffer or its arrow begins. */
interface Curve {
  start: Point;
  bend: Point;
  end: Point;
  /** Of its end. */
  direction: Point;
}

interface Parts {
  group: SVGGElement;
  line: SVGPathElement;
  arrow: SVGPathElement;
  bars: SVGPathElement;
  tank: SVGPathElement | null;
  fill: SVGPathElement | null;
  title: SVGTitleElement;
}

export class Diagram {
  private picture: Picture | null = null;
  private values: Values[] = [];
  private knot: Knot | null = null;
  private state: State = {};
  private verdict = new Set<string>();
  private selected = -1;
  private readonly svg = svgElement("svg", { class: "diagram" });
  private parts: Parts[] = [];
  private curves: Curve[] = [];
  private places = new Map<string, Point>();
  private radius = 14;
  private fullest = LEAST_FULL_BYTES;
  private marks = svgElement("g");

  /** `choose` receives the index of a channel that is clicked; `full` when a buffer is drawn full. */
  constructor(
    private readonly box: HTMLElement,
    private readonly choose: (channel: number) => void,
    private readonly full: (text: string) => void = () => undefined,
  ) {
    new ResizeObserver(() => this.restart()).observe(box);
  }

  /** Draws a fabric; null: another view draws. */
  setPicture(picture: Picture | null): void {
    this.picture = picture;
    this.values = [];
    this.knot = null;
    this.fullest = LEAST_FULL_BYTES;
    this.svg.remove();
    if (picture === null) return;
    this.box.replaceChildren(this.svg);
    this.restart();
  }

  /** Shows the values of a frame. */
  setValues(values: Values[], knot: Knot | null): void {
    this.values = values;
    this.knot = knot;
    this.fullest = Math.max(this.fullest, ...values.map(bufferBytes));
    const held = this.fullest > LEAST_FULL_BYTES ? ", the most that one held in the frames shown" : "";
    this.full(`drawn full at ${bytes(this.fullest)}${held}`);
    this.paint();
  }

  setState(state: State): void {
    this.state = state;
    this.paintSwitches();
  }

  /** Marks the channels of a verdict's cycle; none if empty. */
  setVerdict(channels: Set<string>): void {
    this.verdict = channels;
    this.paint();
  }

  /** Makes one channel stand out; -1 for none. */
  select(channel: number): void {
    this.selected = channel;
    this.paint();
  }

  private restart(): void {
    const { picture, box, svg } = this;
    const [width, height] = [box.clientWidth, box.clientHeight];
    if (picture === null || width === 0 || height === 0) return;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.place(picture, width, height, MARGIN);
    this.curves = picture.channels.map((channel) => this.curve(channel));
    const beyond = this.beyond(width, height);
    if (beyond > 0) {
      this.place(picture, width, height, MARGIN + beyond);
      this.curves = picture.channels.map((channel) => this.curve(channel));
    }
    const lines = svgElement("g");
    this.parts = picture.channels.map((channel, i) => this.channel(channel, i, lines));
    this.marks = svgElement("g", { class: "marks" });
    svg.append(lines, ...this.nodes(picture), this.marks);
    this.paintSwitches();
    this.paint();
  }

  /** How far curves leave the box. */
  private beyond(width: number, height: number): number {
    const middles = this.curves.map((curve) => pointAt(curve, 0.5));
    return Math.max(0, ...middles.flatMap(({ x, y }) => [4 - x, 4 - y, x + 4 - width, y + 4 - height]));
  }

  /** Places all nodes, as large as the box permits. */
  private place(picture: Picture, width: number, height: number, margin: number): void {
    const [xs, ys] = [picture.nodes.map(({ x }) => x), picture.nodes.map(({ y }) => y)];
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    const [low, high] = [Math.min(...ys), Math.max(...ys)];
    const scale = Math.min(
      (width - 2 * margin) / Math.max(right - left, 0.01),
      (height - 2 * margin) / Math.max(high - low, 0.01),
      WIDEST_STEP,
    );
    const shift = {
      x: (width - scale * (right - left)) / 2, y: (height - scale * (high - low)) / 2,
    };
    this.places = new Map(picture.nodes.map(({ name, x, y }) => [
      name, { x: shift.x + scale * (x - left), y: shift.y + scale * (high - y) },
    ]));
    this.radius = Math.max(7, Math.min(19, 0.15 * scale));
  }

  private at(name: string): Point {
    return this.places.get(name) ?? { x: 0, y: 0 };
  }

  private radiusOf(name: string): number {
    return this.isSwitch(name) ? this.radius : Math.max(4, 0.4 * this.radius);
  }

  private isSwitch(name: string): boolean {
    return this.picture?.nodes.find((node) => node.name === name)?.kind === "switch";
  }

  private get tankLength(): number {
    return 1.25 * this.radius;
  }

  private curve({ from, to }: Channel): Curve {
    const [a, b] = [this.at(from), this.at(to)];
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const along = { x: (b.x - a.x) / length, y: (b.y - a.y) / length };
    // To the right of its direction, as on a road.
    const side = { x: -along.y, y: along.x };
    const apart = 0.48 * this.radius;
    const tank = this.isSwitch(to) ? this.tankLength : 0;
    const [first, last] = [this.radiusOf(from), length - this.radiusOf(to) - tank];
    const start = moved(moved(a, along, first), side, apart);
    const end = moved(moved(a, along, last), side, apart);
    const middle = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 };
    const bend = moved(middle, side, this.isCrossed(from, to, a, along, length) ? 0.22 * length : 0);
    const turn = { x: end.x - bend.x, y: end.y - bend.y };
    const size = Math.hypot(turn.x, turn.y) || 1;
    return { start, bend, end, direction: { x: turn.x / size, y: turn.y / size } };
  }

  /** Whether a straight line would pass through another node, as of a link around a torus. */
  private isCrossed(from: string, to: string, a: Point, along: Point, length: number): boolean {
    for (const [name, place] of this.places) {
      if (name === from || name === to) continue;
      const [x, y] = [place.x - a.x, place.y - a.y];
      const far = x * along.x + y * along.y;
      if (far > 0 && far < length && Math.abs(x * along.y - y * along.x) < this.radius) return true;
    }
    return false;
  }

  private channel(channel: Channel, index: number, into: SVGGElement): Parts {
    const { end, direction } = this.curves[index] as Curve;
    const group = svgElement("g", { class: "channel" });
    const hit = svgElement("path", { class: "hit", d: path(this.curves[index] as Curve) });
    const line = svgElement("path", { class: "line", d: path(this.curves[index] as Curve) });
    const arrow = svgElement("path", { class: "arrow" });
    const bars = svgElement("path", { class: "bars" });
    const title = svgElement("title");
    group.append(title, hit, line, bars, arrow);
    let tank: SVGPathElement | null = null;
    let fill: SVGPathElement | null = null;
    if (this.isSwitch(channel.to)) {
      fill = svgElement("path", { class: "fill" });
      tank = svgElement("path", { class: "tank", d: this.box4(end, direction, 0, 1) });
      group.append(fill, tank);
    }
    group.addEventListener("click", () => this.choose(index));
    into.append(group);
    return { group, line, arrow, bars, tank, fill, title };
  }

  /** The outline of a buffer at the end of a channel, from one share of its length to another. */
  private box4(end: Point, along: Point, from: number, to: number): string {
    const side = { x: -along.y, y: along.x };
    const half = 0.34 * this.radius;
    const [a, b] = [moved(end, along, from * this.tankLength), moved(end, along, to * this.tankLength)];
    const corners = [moved(a, side, half), moved(b, side, half), moved(b, side, -half), moved(a, side, -half)];
    return `M${corners.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`;
  }

  private *nodes(picture: Picture): Generator<SVGElement> {
    const middle = this.middle();
    for (const { name, kind } of picture.nodes) {
      const { x, y } = this.at(name);
      const group = svgElement("g", { class: kind, "data-name": name });
      group.append(svgElement("circle", { cx: x, cy: y, r: this.radiusOf(name) }));
      const label = svgElement("text", { x, y: y + 4 });
      if (kind === "host") {
        const right = x >= this.at(this.neighbour(picture, name) ?? name).x;
        label.setAttribute("x", String(x + (right ? 9 : -9)));
        label.setAttribute("text-anchor", right ? "start" : "end");
      } else if (this.radius < 11) {
        label.setAttribute("y", String(y + (y < middle.y ? -this.radius - 3 : this.radius + 11)));
        label.setAttribute("class", "outside");
      }
      label.append(name);
      group.append(label);
      yield group;
    }
  }

  private neighbour(picture: Picture, host: string): string | undefined {
    return picture.channels.find(({ from }) => from === host)?.to;
  }

  private middle(): Point {
    const all = [...this.places.values()];
    return {
      x: all.reduce((sum, { x }) => sum + x, 0) / (all.length || 1),
      y: all.reduce((sum, { y }) => sum + y, 0) / (all.length || 1),
    };
  }

  private paintSwitches(): void {
    const switches = this.state.controller?.reachable ? this.state.controller.switches : undefined;
    for (const group of this.svg.querySelectorAll<SVGGElement>("g.switch")) {
      const name = group.dataset["name"] ?? "";
      group.classList.toggle("lost", switches?.[name]?.connected === false);
    }
  }

  private paint(): void {
    const { picture } = this;
    if (picture === null) return;
    this.parts.forEach((parts, i) => this.paintChannel(parts, i));
    this.paintMarks(picture);
  }

  private paintChannel(parts: Parts, index: number): void {
    const [values, channel, curve] = [
      this.values[index], this.picture?.channels[index], this.curves[index],
    ];
    if (channel === undefined || curve === undefined) return;
    const now = values === undefined ? "idle" : condition(values);
    const inCycle = this.verdict.has(channel.name) && values?.knot !== "cycle";
    const classes = [
      "channel", now.replaceAll(" ", "-"), inCycle ? "verdict" : "",
      index === this.selected ? "chosen" : "",
    ];
    parts.group.setAttribute("class", classes.join(" ").trim());
    const load = Math.min(1, (values?.load ?? 0) / 1000);
    const paused = Math.min(1, (values?.paused ?? 0) / 1000);
    parts.group.style.setProperty("--share", `${Math.round(100 * load)}%`);
    const width = values?.knot === "cycle" ? 5.5 : values?.knot === "member" || inCycle ? 4
      : now === "paused" || now === "paused at times" ? 2.5 + 2 * paused
        : now === "sends" ? 2 + 2.5 * load : 1.4;
    parts.line.style.strokeWidth = String(width);
    parts.arrow.setAttribute("d", arrowhead(curve, 4 + width));
    parts.bars.setAttribute("d", now === "paused" || values?.knot ? pauseBars(curve, 3 + width) : "");
    if (parts.fill !== null) {
      const share = Math.min(1, (values === undefined ? 0 : bufferBytes(values)) / this.fullest);
      parts.fill.setAttribute("d", share < 0.02 ? "" : this.box4(curve.end, curve.direction, 1 - share, 1));
    }
    setText(parts.title, `${channel.name}, ${channel.from} to ${channel.to}: ${now}`);
  }

  /** Numbers the channels of a knot, and shows with arrows which one each of them waits for. */
  private paintMarks(picture: Picture): void {
    const cycle = (this.knot?.cycle ?? []).map(channelOf);
    const index = new Map(picture.channels.map(({ name }, i) => [name, i]));
    const marks: SVGElement[] = [];
    cycle.forEach((name, i) => {
      const [own, next] = [index.get(name), index.get(cycle[(i + 1) % cycle.length] ?? "")];
      if (own === undefined || next === undefined) return;
      const [curve, then] = [this.curves[own] as Curve, this.curves[next] as Curve];
      marks.push(...this.waitArrow(curve, then, this.at(picture.channels[own]?.to ?? "")));
      const { x, y } = pointAt(curve, 0.45);
      marks.push(svgElement("circle", { class: "badge", cx: x, cy: y, r: 9 }));
      const text = svgElement("text", { class: "badge", x, y: y + 4 });
      text.append(String(i + 1));
      marks.push(text);
    });
    this.marks.replaceChildren(...marks);
  }

  /** A dashed arrow around a switch, from a buffer to the channel that must empty it. */
  private waitArrow(from: Curve, to: Curve, centre: Point): SVGElement[] {
    const a = moved(from.end, from.direction, this.tankLength / 2);
    const b = pointAt(to, 0.12);
    const outward = { x: a.x + b.x - 2 * centre.x, y: a.y + b.y - 2 * centre.y };
    const size = Math.hypot(outward.x, outward.y) || 1;
    const bend = moved(centre, { x: outward.x / size, y: outward.y / size }, 3.2 * this.radius);
    const turn = { x: b.x - bend.x, y: b.y - bend.y };
    const length = Math.hypot(turn.x, turn.y) || 1;
    const curve = { start: a, bend, end: b, direction: { x: turn.x / length, y: turn.y / length } };
    return [
      svgElement("path", { class: "wait", d: path(curve) }),
      svgElement("path", { class: "wait-arrow", d: arrowhead(curve, 8) }),
    ];
  }
}

function svgElement<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Record<string, string | number> = {},
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

function moved({ x, y }: Point, direction: Point, distance: number): Point {
  return { x: x + distance * direction.x, y: y + distance * direction.y };
}

function pointAt({ start, bend, end }: Curve, share: number): Point {
  const rest = 1 - share;
  const mix = (a: number, b: number, c: number): number =>
    rest * rest * a + 2 * rest * share * b + share * share * c;
  return { x: mix(start.x, bend.x, end.x), y: mix(start.y, bend.y, end.y) };
}

function path({ start, bend, end }: Curve): string {
  const text = ({ x, y }: Point): string => `${x.toFixed(1)} ${y.toFixed(1)}`;
  return `M${text(start)}Q${text(bend)} ${text(end)}`;
}

function arrowhead({ end, direction }: Curve, size: number): string {
  const side = { x: -direction.y, y: direction.x };
  const back = moved(end, direction, -size);
  return `M${[end, moved(back, side, size / 2), moved(back, side, -size / 2)]
    .map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`;
}

/** Two strokes across the beginning of a channel that may not send. */
function pauseBars(curve: Curve, size: number): string {
  return [0.1, 0.16].map((share) => {
    const [at, next] = [pointAt(curve, share), pointAt(curve, share + 0.01)];
    const length = Math.hypot(next.x - at.x, next.y - at.y) || 1;
    const side = { x: -(next.y - at.y) / length, y: (next.x - at.x) / length };
    const [a, b] = [moved(at, side, size), moved(at, side, -size)];
    return `M${a.x.toFixed(1)} ${a.y.toFixed(1)}L${b.x.toFixed(1)} ${b.y.toFixed(1)}`;
  }).join("");
}
